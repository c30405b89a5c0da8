#include "scenarios/keys/job_keys.hpp"

#include "scenarios/keys/failure_keys.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t most_steps = 1'000'000'000'000;

void read_mean(const Table& table, const KeyFacts& facts, Job& job) {
  job.documents.mean = table.number(facts.name, facts.low, static_cast<double>(job.sequence));
}

constexpr std::array method_keys{word<&Job::method>(
    "method", method_names,
    "sft, dpo, kto; grpo, which has keys of its own; with a head of labels: reward "
    "(pairs), classify (texts), classify_tokens; without a head: embed; mlm: "
    "masked words of an encoder")};

constexpr std::array job_own_keys{
    flag<&Job::reference_model>("reference_model",
                                "dpo, kto: a frozen copy runs along; false: its results are stored")
        .when([](const Job& job) { return job.compares_answers(); }),
    whole<&Job::labels>("labels", 1, 1'000'000,
                        "reward, classify, classify_tokens: numbers that the head makes of a text, "
                        "or of each token")
        .otherwise("1 for reward, else 2",
                   [](Job& job) { job.labels = job.method == Method::reward ? 1 : 2; })
        .when([](const Job& job) { return job.has_labels(); })
        .left_out("3"),
    flag<&Job::label_bias>("label_bias", "that head has a bias")
        .otherwise("true for classify_tokens",
                   [](Job& job) { job.label_bias = job.method == Method::classify_tokens; })
        .when([](const Job& job) { return job.has_labels(); }),
    flag<&Job::word_head>("word_head",
                          "reward: the head over the vocabulary stays beside that of labels, and "
                          "runs forward as well")
        .when([](const Job& job) { return job.method == Method::reward; }),
    whole<&Job::texts>("texts", 2, 64,
                       "embed: texts of an example: a pair, or with so many wrong ones behind it")
        .when([](const Job& job) { return job.method == Method::embed; })
        .left_out("3"),
    flag<&Job::cached_loss>("cached_loss",
                            "embed: all examples of a step are compared; each micro-batch runs "
                            "forward once before, without gradients")
        .when([](const Job& job) { return job.method == Method::embed; }),
    flag<&Job::only_update>(
        "only_update",
        "gradients are there already, and a step is what the optimizer does; not with stages"),
    flag<&Job::first_steps>(
        "first_steps",
        "asked for are the first steps of a run, as its progress bar shows them then"),
    whole<&Job::sequence>("sequence", 1, 1 << 24, "token slots of a row")
        .required()
        .example("8192"),
    whole<&Job::micro_batch>("micro_batch", 1, 1 << 16,
                             "rows (dpo, reward: pairs) that one GPU works on at a time")
        .example("2"),
    whole<&Job::accumulation>("gradient_accumulation", 1, 1 << 16,
                              "micro-batches of an optimizer step")
        .example("8"),
    whole<&Job::global_batch>("global_batch", 1, 1 << 30,
                              "instead of gradient_accumulation: rows (dpo, reward: pairs) of an "
                              "optimizer step over all GPUs; it stays when the number of GPUs or "
                              "micro_batch changes")
        .otherwise("micro_batch x gradient_accumulation x GPUs with different rows")
        .left_out("128"),
    flag<&Job::packed>("packing", "rows are filled with several documents")
        .otherwise("true for sft, else false",
                   [](Job& job) { job.packed = job.method == Method::sft; }),
    number<&Job::images>("images", 0, 10'000,
                         "images of a row, of models with a tower for them; their tokens are among "
                         "those of `sequence`. 0: text alone, without the tower")
        .left_out("1"),
    number<&Job::pixels>("pixels", 1, 1e9,
                         "of an image, which is taken to be as high as it is wide")
        .when([](const Job& job) { return job.images > 0; }),
    number<&Job::fill>("fill", 0.001, 1,
                       "share of the slots that hold tokens; rates and `tokens` leave padding out")
        .when([](const Job& job) { return job.packed || job.documents.mean <= 0; })
        .example("0.95"),
    word<&Job::padding>(
        "padding", padding_names,
        "how far rows of one document are filled up: row: to `sequence`; longest: to "
        "the longest of the micro-batch; none: not at all. Unless it is `row`, "
        "times are of a usual step, and memory is of full rows")
        .when([](const Job& job) { return !job.packed && job.fill < 1; }),
    number<&Job::budget>("budget", 1e3, 1e12,
                         "operations that a step is written as; where it takes more it is refused "
                         "beforehand. A million take 0.2 GB and 1 s to 3 s")
        .left_out("100e6"),
    number<&Job::tokens>("tokens", 1, 1e18,
                         "tokens of the whole run without padding. The length of the run is said "
                         "in one of four ways; without any there is no wall time")
        .otherwise("not said")
        .example("1e9"),
    number<&Job::optimizer_steps>("optimizer_steps", 1, 1e12,
                                  "or: optimizer steps of the whole run")
        .otherwise("not said")
        .left_out("1000"),
    number<&Job::iterations>("iterations", 1, 1e12,
                             "or: micro-batches of each rank in the whole run")
        .otherwise("not said")
        .left_out("8000"),
    number<&Job::samples>("samples", 1, 1e15,
                          "or: rows or pairs of one epoch; needs packing: false")
        .otherwise("not said")
        .left_out("100000"),
    number<&Job::epochs>("epochs", 0.001, 1e6,
                         "how often `samples` is repeated; with the other lengths it only says how "
                         "much an epoch is"),
};

constexpr std::array document_keys{
    Key<Job>{
        .facts = {.name = "mean",
                  .sentence =
                      "in tokens, at most the row; attention sees no further than its document",
                  .kind = KeyKind::number,
                  .low = 1,
                  .required = true,
                  .example = "2000"},
        .read = read_mean,
        .text = [](const KeyFacts& facts,
                   const Job& job) { return detail::set_number_text(facts, job.documents.mean); }},
    number<&Job::documents, &DocumentLength::spread>(
        "spread", 0, 10, "standard deviation over mean of a log-normal distribution; 0: all alike")
        .example("0.8"),
};

constexpr std::array save_keys{
    whole<&Job::save, &Saving::every>("every", 1, most_steps,
                                      "optimizer steps from one to the next; the last step saves "
                                      "as well")
        .required()
        .example("500"),
    flag<&Job::save, &Saving::weights>("weights",
                                       "the model in one piece, gathered under zero 3 and fsdp"),
    word<&Job::save, &Saving::gathers>(
        "gathers", saved_whole_names,
        "where zero 3 and fsdp put it together, frozen parts as well. host: module by module in "
        "the first rank's host memory; devices: each rank keeps all of it on its device; trained: "
        "as host, what is trained alone"),
    flag<&Job::save, &Saving::states>("states", "fp32 copies and moments, by each GPU its own"),
    flag<&Job::save, &Saving::asynchronous>(
        "asynchronous",
        "training waits until all is in host memory; files are written while it goes on"),
};

constexpr std::array job_failure_keys =
    joined_keys(failure_keys<&Job::failures>,
                std::array{
                    time<&Job::failures, &Failures::start>(
                        "start", "until steps go on, the reading of a checkpoint left out")
                        .otherwise("the stack's: ten minutes")
                        .example("10 min"),
                });

constexpr std::array resume_keys{
    whole<&Job::resume, &Resuming::after>("after", 1, most_steps,
                                          "optimizer steps that were done before")
        .required()
        .example("600"),
    word<&Job::resume, &Resuming::skip>(
        "skip", skip_data_names,
        "how the loader gets there: indices: it draws those of what was seen; batches: it makes "
        "all those again; none: it begins anew"),
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
