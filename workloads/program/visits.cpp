#include "workloads/program/visits.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "workloads/layers/checkpointing.hpp"
#include "workloads/layers/frozen_units.hpp"
#include "workloads/layers/precision_units.hpp"
#include "workloads/layers/rank_share.hpp"

namespace stepsim {
namespace {

struct VisitList {
  std::vector<Visit> visits;
  std::map<const Unit*, std::uint32_t> first_instance;
  std::uint32_t instances = 0;

  // Makes both units one instance: what one of them has gathered, the other has as well.
  void share(const Unit& unit, const Unit& owner) {
    first_instance.try_emplace(&unit, first_instance.at(&owner));
  }

  void call(const Unit& unit, std::int16_t layer, Phase phase, bool reversed, bool frozen = false) {
    const auto [place, added] = first_instance.try_emplace(&unit, instances);
    const auto times = static_cast<std::uint32_t>(unit.times);
    if (added) instances += times;
    for (std::uint32_t i = 0; i < times; ++i)
      visits.push_back(
          {&unit, place->second + (reversed ? times - 1 - i : i), layer, phase, frozen});
  }
};

// Returns whether nothing of a tower's layer is kept for a backward pass, and there is none:
// neither it nor what stands before it is trained.
bool runs_once(const ModelUnits& units, std::size_t layer, std::size_t unit) {
  if (layer >= units.of_tower) return false;
  for (std::size_t each = 0; each <= layer; ++each)
    for (std::size_t i = 0; i < (each == layer ? unit + 1 : units.layers[each].size()); ++i)
      if (units.layers[each][i].trained) return false;
  return true;
}

void call_forward(VisitList& list, const ModelUnits& units, bool frozen) {
  const auto layers = static_cast<std::int16_t>(units.layers.size());
  if (units.embeds) list.call(units.embedding, -1, Phase::forward, false, frozen);
  for (const Unit& unit : units.head)
    if (!unit.borrowed.empty()) list.share(unit, units.embedding);
  for (std::int16_t layer = 0; layer < layers; ++layer)
    for (std::size_t i = 0; i < units.layers[static_cast<std::size_t>(layer)].size(); ++i)
      list.call(units.layers[static_cast<std::size_t>(layer)][i], layer, Phase::forward, false,
                frozen || runs_once(units, static_cast<std::size_t>(layer), i));
  for (const Unit& unit : units.head) list.call(unit, layers, Phase::forward, false, frozen);
}

// A unit without products for weights has all of its backward pass at once.
void split_backward(Unit& unit, double number_bytes) {
  Unit::Parts parts{half_of_backward(unit.backward, false), half_of_backward(unit.backward, true)};
  if (parts.weights.empty()) return;
  for (const KernelRow& row : parts.weights)  // [inputs x tokens] times [tokens x results]
    parts.gradient += number_bytes * row.repeats * row.groups * row.depth * row.width;
  unit.parts = std::move(parts);
}

void finish_layer(std::vector<Unit>& units, const StepInput& input, double layer_input,
                  double micro_batches, std::int64_t layer) {
  const auto checkpoint = [&](std::vector<Unit>& made) {
    checkpoint_layer(made, input.stack, input.strategy, layer_input, layer);
  };
  const std::vector<Unit> made = units;
  apply_precision(units, input.stack, input.strategy, micro_batches);
  if (!loses_type_again(input.stack, input.strategy)) return checkpoint(units);
  std::vector<Unit> wide = made;
  checkpoint(wide);
  forget_type(units, made, wide);
  checkpoint(units);
  run_again_as(units, wide);
}

// A loop that has a name for the logits keeps the graph behind them until its next forward pass is
// over, and what functions have saved under a name of theirs. Rows as long as this one come each
// time, unless documents are shorter.
void hold_graph(ModelUnits& units, const StepInput& input) {
  if (!input.stack.holds_logits || units.head.empty()) return;
  double named = 0;
  const bool again = input.strategy.checkpointing == Checkpointing::full;
  for (std::size_t layer = 0; layer < units.alike.size(); ++layer)
    if (!again || !is_checkpointed(input.strategy, static_cast<std::int64_t>(layer)))
      for (const Unit& unit : units.layers[units.alike[layer]]) named += unit.memory.named;
  const Job& job = input.job;
  const bool shorter = !job.packed && job.documents.mean > 0;
  const double usual = shorter ? job.documents.mean / static_cast<double>(job.sequence) : 1;
  double& passing = units.head.back().memory.forward;
  passing = std::max(passing, std::min(usual, 1.0) * named);
}

// Images are looked at before the rows are run.
void put_tower(ModelUnits& units, const StepInput& input, double micro_batches) {
  const Tower& tower = *input.model.tower;
  units.layers = tower_units(tower, input.stack, input.strategy, input.job);
  units.of_tower = units.layers.size();
  for (std::size_t layer = 0; layer < units.of_tower; ++layer) {
    std::vector<Unit>& made = units.layers[layer];
    const auto norm = std::ranges::find(made, Role::attention_norm, &Unit::role);
    const double given = norm->memory.gradient;
    widen_frozen(made, input.strategy);
    finish_layer(made, input, given, micro_batches, static_cast<std::int64_t>(layer));
    units.alike.push_back(layer);
  }
}

}  // namespace

ModelUnits units_of(const StepInput& input, LayersWith which) {
  const Strategy& strategy = input.strategy;
  const Model model = model_of_rank(input.model, strategy);
  const auto load = [&](std::int64_t layer) {
    return load_of_rank(load_of(input.model, input.job, layer), strategy);
  };
  const bool overlaps = input.stack.tensor_layers == TensorLayers::overlapped;
  const auto micro_batches = static_cast<double>(std::max<std::int64_t>(1, input.job.accumulation));
  ModelUnits units;
  if (units.embeds = model.part.embeds; units.embeds) {
    units.embedding = embedding_unit(model, input.stack, strategy, load(0));
    share_embedding(units.embedding, model, strategy, load(0));
    widen_frozen({&units.embedding, 1}, strategy);
    apply_precision({&units.embedding, 1}, input.stack, strategy, micro_batches);
  }
  if (model.part.predicts) {
    units.head = head_units(model, input.stack, strategy, input.job);
    share_head(units.head, model, strategy, load(0), overlaps);
    widen_frozen(units.head, strategy);
    apply_precision(units.head, input.stack, strategy, micro_batches);
  }
  const double layer_input = (widens_frozen(strategy) ? bytes_32 : strategy.precision.numbers) *
                             slots_between_blocks(input.job, strategy) *
                             static_cast<double>(model.hidden);
  if (input.model.tower) put_tower(units, input, micro_batches);
  std::map<std::tuple<LayerKind, std::int64_t, bool>, std::size_t> seen;
  for (std::int64_t layer = 0; layer < input.model.layers; ++layer) {
    const auto [first, added] = seen.try_emplace(
        {kind_of(model, layer), window_of(model, layer), is_checkpointed(strategy, layer)},
        units.layers.size());
    units.alike.push_back(first->second);
    if (!added) {
      units.layers.emplace_back();
      if (which == LayersWith::own_units) units.layers.back() = units.layers[first->second];
      continue;
    }
    units.layers.push_back(layer_units(model, input.stack, strategy, load(layer), layer));
    share_layer(units.layers.back(), model, strategy, load(layer), overlaps);
    widen_frozen(units.layers.back(), strategy);
    finish_layer(units.layers.back(), input, layer_input, micro_batches, layer);
  }
  hold_graph(units, input);
  for (Unit& unit : units.head)
    if (input.model.tied_embeddings && unit.role == Role::head)
      unit.borrowed = units.embedding.tensors;
  part_from_loss(units.head);
  for (Unit& unit : units.head) unit.memory.kept = unit.memory.saved;
  units.embedding.memory.kept = units.embedding.memory.saved;
  if (splits_backward(strategy.pipeline_parallel.schedule) || strategy.experts.delays_weights) {
    for (std::vector<Unit>& layer : units.layers)
      for (Unit& unit : layer) split_backward(unit, strategy.precision.numbers);
    for (Unit& unit : units.head) split_backward(unit, strategy.precision.numbers);
  }
  return units;
}

OtherPasses other_passes(const Job& job, const ModelUnits& reference) {
  if (job.only_evaluates)
    return {.reference = &reference,
            .of_reference = job.reference_passes(),
            .without_gradients = 1 + job.estimating_passes(),
            .trains = false};
  return {.reference = &reference,
          .of_reference = job.reference_passes(),
          .without_gradients =
              job.scoring_passes + job.estimating_passes() + (job.cached_loss ? 1 : 0)};
}

std::vector<Visit> visits_of(const ModelUnits& units, const OtherPasses& others) {
  VisitList list;
  const auto layer_count = static_cast<std::int16_t>(units.layers.size());
  for (std::int64_t pass = 0; pass < others.without_gradients; ++pass)
    call_forward(list, units, true);
  if (others.trains) call_forward(list, units, false);
  for (std::int64_t pass = 0; pass < others.of_reference; ++pass)
    call_forward(list, *others.reference, true);
  if (!others.trains) return std::move(list.visits);
  for (std::size_t i = units.head.size(); i-- > 0;)
    list.call(units.head[i], layer_count, Phase::backward, true);
  for (std::int16_t layer = layer_count; layer-- > 0;) {
    const std::vector<Unit>& inside = units.layers[static_cast<std::size_t>(layer)];
    const auto once = [&](std::size_t i) {
      return runs_once(units, static_cast<std::size_t>(layer), i);
    };
    for (std::size_t i = 0; i < inside.size(); ++i)
      if (inside[i].called_again && !once(i)) list.call(inside[i], layer, Phase::recompute, false);
    for (std::size_t i = inside.size(); i-- > 0;)
      if (!once(i)) list.call(inside[i], layer, Phase::backward, true);
  }
  if (units.embeds) list.call(units.embedding, -1, Phase::backward, true);
  return std::move(list.visits);
}

}  // namespace stepsim
