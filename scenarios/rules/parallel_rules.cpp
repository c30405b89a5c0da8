#include <fmt/format.h>

#include <algorithm>

#include "scenarios/rules/rules.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

// Returns the ranks of one pipeline stage, which share what follows among them; all where stages do
// not come out even, which is said already.
std::int64_t ranks_of(const StepSplit& sharing) {
  const std::int64_t ranks = sharing.cluster.ranks();
  const std::int64_t stages = sharing.strategy.pipeline_parallel.size;
  return ranks % stages == 0 ? ranks / stages : ranks;
}

bool mixes_twice(const Model& model) {
  return std::ranges::any_of(
      model.kinds, [](const LayerKind& kind) { return kind.mixes == LayerKind::Mixes::both; });
}

struct Checker {
  const Table& table;
  std::string_view key;

  void divides(std::int64_t ranks, std::int64_t whole, std::string_view what) const {
    if (whole % ranks != 0)
      table.problem(key, fmt::format("{} does not divide {} {}", ranks, whole, what));
  }
  // If there are fewer heads of keys and values than ranks, several ranks hold the same.
  void shares(std::int64_t ranks, std::int64_t heads) const {
    if (heads % ranks != 0 && ranks % heads != 0)
      table.problem(
          key, fmt::format("{} neither divides {} key-value heads nor is a multiple of them", ranks,
                           heads));
  }
};

// Ranks have whole heads of a mixer and whole groups of them, as Megatron-Core asks. How they would
// share one state, or a convolution that is a whole layer, is not modelled.
void check_mixer(const Checker& check, std::int64_t ranks, const Model& model) {
  const Mixer& mixer = *model.mixer;
  if (mixer.kind == MixerKind::convolution || mixer.kind == MixerKind::mamba || mixes_twice(model))
    return check.table.problem(check.key, *why_undivided(model));
  check.divides(ranks, mixer.heads, fmt::format("heads of {}", mixer_name(mixer)));
  check.divides(ranks, mixer.groups, fmt::format("groups of heads of {}", mixer_name(mixer)));
}

void refuse_undivided(const Table& table, std::string_view key, const Model& model) {
  if (const auto why = why_undivided(model)) table.problem(key, *why);
}

void check_tensor(const Table& table, const StepSplit& sharing) {
  const std::int64_t ranks = sharing.strategy.tensor_parallel.size;
  const Model& model = sharing.model;
  const Checker check{table, "size"};
  const TensorParallel& tensor = sharing.strategy.tensor_parallel;
  const bool cuts =
      sharing.strategy.compiled || sharing.stack.tensor_layers == TensorLayers::overlapped;
  if (tensor.in_pieces && (!tensor.sequence || tensor.gathers_each || !cuts))
    table.problem(
        "async",
        "needs compile: true or a stack that overlaps products, sequence: true and no gather_each");
  if (expert_tensor_of(sharing.strategy) > 1 && sharing.strategy.lora.rank > 0 &&
      sharing.strategy.lora.targets == LoraTargets::all && sharing.model.experts)
    table.problem("size",
                  "is not modelled with lora beside divided experts: needs lora.targets: linear or "
                  "moe.expert_tensor_parallel: 1");
  if (ranks > 1 && (model.encoder || !model.head.has_words() || model.head.has_labels()))
    table.problem("size",
                  "is modelled with a head over the vocabulary of a decoder (method: sft, "
                  "dpo, kto, grpo)");
  if (ranks > 1 && model.mixer) check_mixer(check, ranks, model);
  check.divides(ranks, ranks_of(sharing), "ranks");
  check.divides(ranks, model.attention.heads, "attention heads");
  check.shares(ranks, model.attention.kv_heads);
  if (model.feed_forward.width > 0)
    check.divides(ranks, model.feed_forward.width, "columns of the feed-forward block");
  if (model.experts) check.divides(ranks, model.experts->width, "columns of an expert");
  if (sharing.strategy.tensor_parallel.sequence)
    check.divides(ranks, sharing.job.sequence, "tokens of a sequence");
}

void check_sequence(const Table& table, const StepSplit& sharing) {
  const SequenceParallel& s = sharing.strategy.sequence_parallel;
  const std::int64_t tensor = sharing.strategy.tensor_parallel.size;
  const Checker ulysses{table, "ulysses"}, ring{table, "ring"};
  if (s.ulysses > 1) refuse_undivided(table, "ulysses", sharing.model);
  if (s.ring > 1) refuse_undivided(table, "ring", sharing.model);
  const std::int64_t left = std::max<std::int64_t>(1, ranks_of(sharing) / tensor);
  ulysses.divides(s.ulysses, left, "ranks");
  ulysses.divides(s.ulysses, std::max<std::int64_t>(1, sharing.model.attention.heads / tensor),
                  "attention heads of a rank");
  ulysses.shares(s.ulysses, std::max<std::int64_t>(1, sharing.model.attention.kv_heads / tensor));
  ulysses.divides(s.ulysses, sharing.job.sequence, "tokens of a sequence");
  if (left % s.ulysses == 0) ring.divides(s.ring, left / s.ulysses, "ranks");
  // Each rank holds a piece from the front and one from the back, or causal masks load them
  // unevenly.
  if (s.ring > 1 && sharing.job.sequence % (2 * s.ring) != 0)
    table.problem("ring", fmt::format("a sequence of {} is no multiple of 2 x {} pieces",
                                      sharing.job.sequence, s.ring));
}

void check_hybrid(const Table& table, const StepSplit& sharing) {
  const FsdpKeys& keys = sharing.strategy.fsdp;
  if (sharing.strategy.sharding != Sharding::hsdp) return;
  const std::int64_t ranks = ranks_of(sharing) / sharing.strategy.tensor_parallel.size;
  const std::int64_t shard = wanted_shard(sharing.strategy, sharing.cluster);
  const std::int64_t replicate =
      keys.replicate > 0 ? keys.replicate : std::max<std::int64_t>(1, ranks / shard);
  if (shard * replicate == ranks) return;
  table.problem("fsdp",
                fmt::format("shard {} x replicate {} is not {} ranks", shard, replicate, ranks));
}

void check_secondary(const Table& table, const StepSplit& sharing) {
  const Strategy& s = sharing.strategy;
  const Checker check{table, "zero_hpz_partition_size"};
  const std::int64_t ranks = ranks_of(sharing) / s.tensor_parallel.size;
  check.divides(s.zero.hpz, ranks, "ranks");
  const auto needs_stage_3 = [&](std::string_view key, bool asked) {
    if (asked && s.sharding != Sharding::zero3) table.problem(key, "needs zero: 3");
  };
  needs_stage_3("zero_hpz_partition_size", s.zero.hpz > 1);
  needs_stage_3("zero_quantized_weights", s.zero.quantized_weights);
  needs_stage_3("zero_quantized_gradients", s.zero.quantized_gradients);
}

}  // namespace

// Says why a sequence cannot be divided: how ranks would hand a state on along it, or score tokens
// that others have, is not modelled.
std::optional<std::string> why_undivided(const Model& model) {
  const auto because = [&](const std::string& why) {
    return fmt::format("is not modelled for {}, {}", model.name, why);
  };
  if (model.attention.indexer) return because("whose queries choose among all tokens");
  if (!model.mixer) return {};
  const std::string_view mixer = mixer_name(*model.mixer);
  return because(mixes_twice(model)
                     ? fmt::format("whose layers attend beside another mixer: {}", mixer)
                     : fmt::format("whose layers do not all attend: {}", mixer));
}

void check_parallel(const Table& strategy, const StepSplit& sharing) {
  check_pipeline(strategy, sharing);
  if (const auto table = strategy.table_if("tensor_parallel")) check_tensor(*table, sharing);
  if (const auto table = strategy.table_if("sequence_parallel")) check_sequence(*table, sharing);
  if (const auto table = strategy.table_if("zero_optimization")) check_secondary(*table, sharing);
  check_hybrid(strategy, sharing);
}

}  // namespace stepsim
