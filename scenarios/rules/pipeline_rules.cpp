#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "scenarios/rules/rules.hpp"
#include "workloads/pipeline/stages.hpp"

namespace stepsim {
namespace {

// Writes "4 stages" or "4 x 2 pieces".
std::string pieces_text(const PipelineParallel& p) {
  return p.virtual_stages == 1 ? fmt::format("{} stages", p.size)
                               : fmt::format("{} x {} pieces", p.size, p.virtual_stages);
}

void check_layers(const Table& table, const Model& model, const PipelineParallel& p) {
  if (p.layers.empty()) {
    const std::string_view key = p.virtual_stages > 1 ? "virtual_stages" : "size";
    if (p.pieces() > model.layers)
      table.problem(key, fmt::format("{} are more than the {} layers of {}", pieces_text(p),
                                     model.layers, model.name));
    else if (model.layers % p.pieces() != 0)
      table.problem(key, fmt::format("{} do not divide {} layers; say how many each has, such as "
                                     "layers: [{}]",
                                     pieces_text(p), model.layers,
                                     fmt::join(layers_of_pieces(model, p), ", ")));
    return;
  }
  const auto count = static_cast<std::int64_t>(p.layers.size());
  if (count != p.pieces()) {
    table.problem("layers", fmt::format("expected {} numbers, one for each of {}, found {}",
                                        p.pieces(), pieces_text(p), count));
    return;
  }
  const std::int64_t sum = std::accumulate(p.layers.begin(), p.layers.end(), std::int64_t{0});
  if (sum != model.layers)
    table.problem("layers", fmt::format("expected {} layers in all, those of {}, found {}",
                                        model.layers, model.name, sum));
  // The first has the embedding, the last the head.
  for (std::size_t i = 1; i + 1 < p.layers.size(); ++i)
    if (p.layers[i] == 0) {
      table.problem("layers", "only the first and the last may have none");
      return;
    }
}

// Notes too few micro-batches: as many as there are pieces on the way are needed before the first
// one is over.
void check_dual(const Table& table, const PipelineParallel& p, std::int64_t micro_batches) {
  const bool both = p.schedule == PipelineSchedule::dualpipe;
  if (!both && p.schedule != PipelineSchedule::dualpipe_v) return;
  if (both && p.size % 2 != 0)
    table.problem("schedule", fmt::format("dualpipe needs an even size, found {}", p.size));
  if (micro_batches < 2 * p.size)
    table.problem("schedule", fmt::format("{} needs 2 micro-batches for each stage, here {}: "
                                          "job.gradient_accumulation is {}",
                                          to_text(p.schedule), 2 * p.size, micro_batches));
  else if (both && micro_batches % 2 != 0)
    table.problem("schedule", fmt::format("dualpipe runs half of the micro-batches each way: "
                                          "job.gradient_accumulation {} is odd",
                                          micro_batches));
}

void check_schedule(const Table& table, const StepSplit& sharing) {
  const PipelineParallel& p = sharing.strategy.pipeline_parallel;
  const std::string_view name = to_text(p.schedule);
  const bool interleaved = p.schedule == PipelineSchedule::interleaved;
  const bool turns_back = p.way() == PipelineWay::there_and_back;
  if (interleaved && p.virtual_stages == 1)
    table.problem("schedule", "interleaved needs virtual_stages: 2 or more");
  if (turns_back && p.virtual_stages != 2)
    table.problem("schedule", fmt::format("{} needs virtual_stages: 2, a piece there and one back; "
                                          "found {}",
                                          name, p.virtual_stages));
  if (!interleaved && !turns_back && p.schedule != PipelineSchedule::zb_h1 && p.virtual_stages > 1)
    table.problem("virtual_stages",
                  fmt::format("{} has one piece on each stage; more need schedule: interleaved, "
                              "zb_h1, zbv, v_half, v_min or dualpipe_v",
                              name));
  if (!turns_back && p.virtual_stages > 1 && sharing.job.accumulation % p.size != 0)
    table.problem("schedule", fmt::format("interleaved stages take micro-batches {} at a time: "
                                          "job.gradient_accumulation {} is no multiple of that",
                                          p.size, sharing.job.accumulation));
  check_dual(table, p, sharing.job.accumulation);
  if (splits_backward(p.schedule) && sharing.strategy.compiled)
    table.problem("schedule", fmt::format("{} splits backward passes, which PyTorch refuses with "
                                          "strategy.compile: true",
                                          name));
}

// Returns what a pipeline is not modelled with, or what its frameworks refuse.
std::vector<std::string> refusals(const StepSplit& sharing) {
  const Strategy& s = sharing.strategy;
  std::vector<std::string> list;
  const auto refuse = [&](bool when, std::string_view what) {
    if (when) list.emplace_back(what);
  };
  refuse(s.sharding == Sharding::zero2 || s.sharding == Sharding::zero3,
         "zero: 2 and 3 send gradients away behind each micro-batch, but a stage adds those of all "
         "its micro-batches up first: DeepSpeed's pipelines work with zero: 0 or 1, fsdp's keep "
         "parameters gathered");
  refuse(is_fsdp(s.sharding) && s.fsdp.sync_each_batch &&
             splits_backward(s.pipeline_parallel.schedule),
         "fsdp.sync_each_batch: true is not modelled with split backward passes, whose gradients "
         "come in two parts");
  refuse(is_fsdp(s.sharding) && sharing.model.tied_embeddings,
         "is not modelled with fsdp and a head that shares the embedding's matrix");
  const bool learners = sharing.job.method == Method::grpo;
  refuse(sharing.job.method != Method::sft && !learners,
         "is modelled for method: sft and grpo only");
  refuse(learners && splits_backward(s.pipeline_parallel.schedule),
         "is modelled for grpo with schedules that do not split backward passes");
  refuse(sharing.job.only_update, "is not modelled with job.only_update");
  refuse(sharing.job.evaluation.micro_batch > 0, "is not modelled with job.evaluation");
  refuse(s.optimizer_place != Offload::none || s.parameter_place != Offload::none ||
             s.activation_place != Offload::none,
         "is not modelled with offload");
  refuse(s.update_in_backward, "is not modelled with update_in_backward");
  refuse(has_slots(s.experts.kernel) && sharing.model.experts,
         "is modelled for grouped, megablocks and padded experts, and for loops");
  refuse(sharing.job.save.every > 0 || sharing.job.resume.after > 0,
         "is not modelled with job.save and job.resume");
  return list;
}

}  // namespace

void check_pipeline(const Table& strategy, const StepSplit& sharing) {
  const auto table = strategy.table_if("pipeline_parallel");
  const PipelineParallel& p = sharing.strategy.pipeline_parallel;
  if (!table) return;
  if (p.size == 1) {
    constexpr std::string_view alone = "needs a size of 2 or more";
    if (p.schedule >= PipelineSchedule::interleaved) table->problem("schedule", alone);
    if (p.virtual_stages > 1) table->problem("virtual_stages", alone);
    if (!p.layers.empty()) table->problem("layers", alone);
    return;
  }
  if (sharing.cluster.ranks() % p.size != 0)
    table->problem("size",
                   fmt::format("{} does not divide {} ranks", p.size, sharing.cluster.ranks()));
  check_layers(*table, sharing.model, p);
  check_schedule(*table, sharing);
  for (const std::string& refusal : refusals(sharing)) table->problem("size", refusal);
}

// Each stage fills and drains once; pieces make that shorter.
std::vector<std::string> pipeline_notes(const PipelineParallel& p, const Job& job) {
  if (p.size == 1 || job.accumulation >= p.size || splits_backward(p.schedule)) return {};
  const double idle = static_cast<double>(p.size - 1) / static_cast<double>(p.virtual_stages);
  return {fmt::format(
      "{} micro-batches are fewer than {} stages: each stage waits for the others "
      "{:.0f} % of the passes",
      job.accumulation, p.size, 100 * idle / (idle + static_cast<double>(job.accumulation)))};
}

}  // namespace stepsim
