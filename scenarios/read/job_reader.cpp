#include "scenarios/read/job_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "scenarios/keys/key_tables.hpp"
#include "scenarios/read/run_length.hpp"
#include "workloads/strategy/mesh.hpp"
#include "workloads/strategy/row_lengths.hpp"

namespace stepsim {
namespace {

// Notes that the length of the run is said more than once.
void check_lengths(const Table& table, const Job& job) {
  std::vector<std::string_view> said;
  for (const std::string_view key :
       std::array<std::string_view, 4>{"tokens", "optimizer_steps", "iterations", "samples"})
    if (table.has(key)) said.push_back(key);
  if (said.size() > 1)
    table.problem(said[1],
                  fmt::format("says again how long the run is: {} does already", said.front()));
  if (job.samples > 0 && job.packed)
    table.problem("samples", "needs packing: false; a packed job is given by tokens or steps");
}

// A row that holds one document is filled as far as that goes; said twice, the two may differ.
void fill_with_document(const Table& table, Job& job) {
  if (job.packed) job.padding = Padding::row;
  if (job.packed || job.documents.mean <= 0) return;
  if (table.has("fill"))
    table.problem("fill", "is what document_length says already when packing is false");
  job.fill = kept_tokens(job) / static_cast<double>(job.sequence);
}

// Gives each rank as many micro-batches as make up the batch.
void share_out(const Table& table, Scenario& scenario) {
  constexpr std::string_view key = "global_batch", accumulation = "job.gradient_accumulation";
  Job& job = scenario.job;
  const std::int64_t ranks = mesh_of(scenario.strategy, scenario.cluster).data();
  const std::int64_t round = job.micro_batch * ranks, count = job.global_batch / round;
  const std::string factors = fmt::format("micro_batch {} x {} ranks", job.micro_batch, ranks);
  const auto told = std::ranges::find(scenario.said, accumulation, &SaidKey::path);
  if (table.has("gradient_accumulation"))
    return table.problem("gradient_accumulation", "follows from global_batch: say one of them");
  if (told != scenario.said.end() && job.accumulation * round != job.global_batch)
    return table.problem(
        key, fmt::format("{} makes {} of it: {} x gradient accumulation {}", told->origin.source,
                         job.accumulation * round, factors, job.accumulation));
  if (job.global_batch % round != 0)
    return table.problem(
        key, fmt::format(
                 "{} is no multiple of {} = {}; the nearest {}", job.global_batch, factors, round,
                 count == 0 ? fmt::format("is {}", round)
                            : fmt::format("are {} and {}", count * round, (count + 1) * round)));
  job.accumulation = count;
  scenario.said.push_back({std::string(accumulation), "", {.source = "job.global_batch"}});
}

}  // namespace

Job read_job(const Table& table) {
  Job job;
  read_block(std::optional(table), method_block(), job);
  if (job.method == Method::grpo) return job;  // what it says is read by read_grpo()
  read_blocks(table, job_blocks(), job);
  fill_with_document(table, job);
  check_lengths(table, job);
  if (const auto save = table.table_if("save"); save && !job.save.weights && !job.save.states)
    save->problem("states", "nothing is left to save: weights is false as well");
  return job;
}

void finish_job(const Table& table, Scenario& scenario) {
  const Job& job = scenario.job;
  if (job.method == Method::grpo) return;
  if (job.global_batch > 0 && table.sound()) share_out(table, scenario);
  const Cluster& cluster = scenario.cluster;
  for (const std::string_view key : {"save", "resume"})
    if (table.has(key) && cluster.node.count(PartKind::nvme) == 0)
      table.problem(key, fmt::format("{} has no drives in its file", cluster.node.name));
  if (job.failures.any() && job.failures.save.value == 0 && cluster.node.count(PartKind::nvme) == 0)
    table.table("failures")
        .problem(
            "save",
            fmt::format("is missing: {} has no drives in its file, to which a checkpoint would "
                        "go",
                        cluster.node.name));
  if (job.failures.any() && job.failures.save.value == 0 &&
      scenario.strategy.pipeline_parallel.size > 1)
    scenario.notes.emplace_back(
        "job.failures: a checkpoint is taken to hold each stage up as long as the first one");
  if (job.resume.after == 0) return;
  const auto length = run_length(scenario);
  if (length && job.resume.after >= length->optimizer_steps)
    table.table("resume").problem(
        "after",
        fmt::format("expected fewer than the {:.10g} optimizer steps of the run, found {:.10g}",
                    length->optimizer_steps, job.resume.after));
}

}  // namespace stepsim
