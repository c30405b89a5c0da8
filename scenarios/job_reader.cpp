#include "scenarios/job_reader.hpp"

#include <fmt/format.h>

#include "scenarios/choice.hpp"
#include "scenarios/run_length.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t most_steps = 1'000'000'000'000;

Saving read_saving(const Table& table) {
  Saving save;
  save.every = static_cast<double>(table.integer("every", 1, most_steps));
  save.weights = table.flag_or("weights", true);
  save.states = table.flag_or("states", true);
  if (!save.weights && !save.states)
    table.problem("states", "nothing is left to save: weights is false as well");
  return save;
}

// A row that holds one document is filled as far as that goes; said twice, the two may differ.
void read_documents(const Table& table, Job& job) {
  const auto documents = table.table_if("document_length");
  if (!documents) return;
  job.documents.mean = documents->number("mean", 1, static_cast<double>(job.sequence));
  job.documents.spread = documents->number_or("spread", 0, 0, 10);
  if (job.packed || job.documents.mean <= 0) return;
  if (table.has("fill"))
    table.problem("fill", "is what document_length says already when packing is false");
  job.fill = job.documents.mean / static_cast<double>(job.sequence);
}

}  // namespace

Job read_job(const Table& table) {
  Job job;
  job.method = choice(table, "method", method_names, Method::sft);
  if (job.method == Method::grpo) return job;  // what it says is read by read_grpo()
  job.reference_model = table.flag_or("reference_model", true);
  job.only_update = table.flag_or("only_update", false);
  job.sequence = table.integer("sequence", 1, 1 << 24);
  job.micro_batch = table.integer_or("micro_batch", 1, 1, 1 << 16);
  job.accumulation = table.integer_or("gradient_accumulation", 1, 1, 1 << 16);
  job.packed = table.flag_or("packing", job.method == Method::sft);
  job.fill = table.number_or("fill", 1, 0.001, 1);
  read_documents(table, job);
  job.epochs = table.number_or("epochs", 1, 0.001, 1e6);
  std::vector<std::string_view> lengths;
  const auto length = [&](std::string_view key, double most) {
    if (!table.has(key)) return 0.0;
    lengths.push_back(key);
    return table.number(key, 1, most);
  };
  job.tokens = length("tokens", 1e18);
  job.optimizer_steps = length("optimizer_steps", 1e12);
  job.iterations = length("iterations", 1e12);
  job.samples = length("samples", 1e15);
  if (lengths.size() > 1)
    table.problem(lengths[1],
                  fmt::format("says again how long the run is: {} does already", lengths.front()));
  if (job.samples > 0 && job.packed)
    table.problem("samples", "needs packing: false; a packed job is given by tokens or steps");
  if (const auto save = table.table_if("save")) job.save = read_saving(*save);
  if (const auto resume = table.table_if("resume")) {
    job.resume.after = static_cast<double>(resume->integer("after", 1, most_steps));
    job.resume.skip = choice(*resume, "skip", skip_data_names, SkipData::indices);
  }
  return job;
}

void check_job(const Table& table, const Job& job, const Strategy& strategy,
               const Cluster& cluster) {
  for (const std::string_view key : {"save", "resume"})
    if (table.has(key) && cluster.node.count(PartKind::nvme) == 0)
      table.problem(key, fmt::format("{} has no drives in its file", cluster.node.name));
  if (job.resume.after == 0) return;
  const auto length = run_length(job, mesh_of(strategy, cluster).data());
  if (length && job.resume.after >= length->optimizer_steps)
    table.table("resume").problem(
        "after",
        fmt::format("expected fewer than the {:.10g} optimizer steps of the run, found {:.10g}",
                    length->optimizer_steps, job.resume.after));
}

}  // namespace stepsim
