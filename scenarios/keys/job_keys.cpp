#include "scenarios/keys/failure_keys.hpp"
#include "scenarios/keys/key_tables.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t most_steps = 1'000'000'000'000;

void read_mean(const Table& table, const KeyFacts& facts, Job& job) {
  job.documents.mean = table.number(facts.name, facts.low, static_cast<double>(job.sequence));
}

constexpr std::array method_keys{
    word<&Job::method>("method", method_names),
};

constexpr std::array job_own_keys{
    flag<&Job::reference_model>("reference_model").when([](const Job& job) {
      return job.compares_answers();
    }),
    whole<&Job::labels>("labels", 1, 1'000'000)
        .prepared([](Job& job) { job.labels = job.method == Method::reward ? 1 : 2; })
        .when([](const Job& job) { return job.has_labels(); }),
    flag<&Job::label_bias>("label_bias")
        .prepared([](Job& job) { job.label_bias = job.method == Method::classify_tokens; })
        .when([](const Job& job) { return job.has_labels(); }),
    flag<&Job::word_head>("word_head").when([](const Job& job) {
      return job.method == Method::reward;
    }),
    whole<&Job::texts>("texts", 2, 64).when([](const Job& job) {
      return job.method == Method::embed;
    }),
    flag<&Job::cached_loss>("cached_loss").when([](const Job& job) {
      return job.method == Method::embed;
    }),
    flag<&Job::only_update>("only_update"),
    flag<&Job::first_steps>("first_steps"),
    whole<&Job::sequence>("sequence", 1, 1 << 24).required(),
    whole<&Job::micro_batch>("micro_batch", 1, 1 << 16),
    whole<&Job::accumulation>("gradient_accumulation", 1, 1 << 16),
    whole<&Job::global_batch>("global_batch", 1, 1 << 30),
    flag<&Job::packed>("packing").prepared(
        [](Job& job) { job.packed = job.method == Method::sft; }),
    number<&Job::images>("images", 0, 10'000),
    number<&Job::pixels>("pixels", 1, 1e9).when([](const Job& job) { return job.images > 0; }),
    number<&Job::fill>("fill", 0.001, 1).when([](const Job& job) {
      return job.packed || job.documents.mean <= 0;
    }),
    word<&Job::padding>("padding", padding_names).when([](const Job& job) {
      return !job.packed && job.fill < 1;
    }),
    number<&Job::budget>("budget", 1e3, 1e12),
    number<&Job::tokens>("tokens", 1, 1e18),
    number<&Job::optimizer_steps>("optimizer_steps", 1, 1e12),
    number<&Job::iterations>("iterations", 1, 1e12),
    number<&Job::samples>("samples", 1, 1e15),
    number<&Job::epochs>("epochs", 0.001, 1e6),
};

constexpr std::array document_keys{
    Key<Job>{
        .facts = {.name = "mean", .kind = KeyKind::number, .low = 1, .required = true},
        .read = read_mean,
        .text = [](const KeyFacts& facts,
                   const Job& job) { return detail::set_number_text(facts, job.documents.mean); }},
    number<&Job::documents, &DocumentLength::spread>("spread", 0, 10),
};

constexpr std::array save_keys{
    whole<&Job::save, &Saving::every>("every", 1, most_steps).required(),
    flag<&Job::save, &Saving::weights>("weights"),
    word<&Job::save, &Saving::gathers>("gathers", saved_whole_names),
    flag<&Job::save, &Saving::states>("states"),
    flag<&Job::save, &Saving::asynchronous>("asynchronous"),
};

constexpr std::array evaluation_keys{
    whole<&Job::evaluation, &Evaluating::micro_batch>("micro_batch", 1, 1 << 20).required(),
    number<&Job::evaluation, &Evaluating::every>("every", 0, most_steps),
    number<&Job::evaluation, &Evaluating::rows>("rows", 0, 1e12),
};

constexpr std::array job_failure_keys =
    joined_keys(failure_keys<&Job::failures>, std::array{
                                                  time<&Job::failures, &Failures::start>("start"),
                                              });

constexpr std::array resume_keys{
    whole<&Job::resume, &Resuming::after>("after", 1, most_steps).required(),
    word<&Job::resume, &Resuming::skip>("skip", skip_data_names),
};

constexpr std::array job_tables{
    Block<Job>{"", "what a step works on, and how long the run is", method_keys},
    Block<Job>{"", "", job_own_keys},
    Block<Job>{.name = "document_length",
               .sentence = "of the documents that rows are made of; without this block a document "
                           "fills its row, or the part that `fill` says",
               .keys = document_keys,
               .matters = [](const Job& job) { return job.documents.mean > 0; }},
    Block<Job>{.name = "save",
               .sentence = "what is written so that the job can go on later; without this block "
                           "nothing is",
               .keys = save_keys,
               .matters = [](const Job& job) { return job.save.every > 0; }},
    Block<Job>{.name = "evaluation",
               .sentence = "passes over rows held back; without this block there are none",
               .keys = evaluation_keys,
               .matters = [](const Job& job) { return job.evaluation.micro_batch > 0; },
               .left_out = true},
    Block<Job>{.name = "failures",
               .sentence = "nodes, GPUs, switches that fail now and then, and what is left of a "
                           "run's time",
               .keys = job_failure_keys,
               .matters = [](const Job& job) { return job.failures.any(); },
               .left_out = true},
    Block<Job>{.name = "resume",
               .sentence = "the job went on from a checkpoint",
               .keys = resume_keys,
               .matters = [](const Job& job) { return job.resume.after > 0; },
               .left_out = true},
};

}  // namespace

const Block<Job>& method_block() {
  return job_tables.front();
}

std::span<const Block<Job>> job_blocks() {
  return std::span(job_tables).subspan(1);
}

}  // namespace stepsim
