#include "workloads/layers/checkpointing.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/layers/precision_units.hpp"

namespace stepsim {
namespace {

// All of it, from what it was given.
void run_again(Unit& unit, bool sends) {
  unit.called_again = true;
  unit.sends_again = sends;
  unit.again = unit.forward;
  if (sends) unit.hand.arrive_again = unit.hand.arrive;
}

// Kernels of attention, and what makes queries, keys and values out of narrow ones.
void recompute_attention(Unit& unit, const RecomputedModules& modules) {
  const bool core = modules.has(LayerPart::core_attn), inputs = modules.has(unit.part);
  if (!core && !inputs) return;
  unit.called_again = true;
  const auto own = unit.forward.end() - unit.core_rows;
  if (inputs) unit.again.assign(unit.forward.begin(), own);
  if (core) unit.again.insert(unit.again.end(), own, unit.forward.end());
  if (core) unit.memory.kept -= unit.memory.core - unit.memory.shared;
  if (inputs) unit.memory.kept -= unit.memory.saved - unit.memory.core;
}

void recompute_activation(Unit& unit) {
  unit.called_again = true;
  unit.memory.kept -= unit.memory.acted;
  for (const KernelRow& row : unit.forward)
    if (row.op == Operator::activation || row.op == Operator::activation_fused)
      unit.again.push_back(row);
}

// Hands to norms what they make: it is kept by those that read it, and computed again it comes from
// the norm.
void hand_to_norms(std::vector<Unit>& units) {
  Unit* norm = nullptr;
  for (Unit& unit : units) {
    if (unit.role == Role::attention_norm || unit.role == Role::feed_forward_norm) norm = &unit;
    if (norm == nullptr || unit.memory.normed <= 0) continue;
    if (!norm->called_again) {
      norm->memory.kept = norm->memory.saved;
      run_again(*norm, false);
    }
    norm->memory.saved += unit.memory.normed;
    unit.memory.saved -= std::exchange(unit.memory.normed, 0);
  }
}

void recompute_modules(std::vector<Unit>& units, const RecomputedModules& modules) {
  if (modules.has(LayerPart::layernorm)) hand_to_norms(units);
  for (Unit& unit : units) {
    if (unit.called_again) continue;  // a norm
    unit.memory.kept = unit.memory.saved;
    if (modules.whole(unit.part)) {
      run_again(unit, true);
      unit.memory.kept = unit.memory.normed;
    } else if (unit.core_rows > 0) {
      recompute_attention(unit, modules);
    } else if (unit.part == LayerPart::mla_up_proj && modules.has(unit.part)) {
      run_again(unit, false);
    } else if (unit.memory.acted > 0 && modules.has(LayerPart::moe_act)) {
      recompute_activation(unit);
    }
  }
}

// A kernel whose result was kept is an operator that finds it, and no kernel.
KernelRow from_cache(KernelRow row) {
  const double operators = row.operators.value_or(row.launches);
  return {row.name, row.kind, 0, 0, 0, operators, row.share};
}

// The policy names single matrix products and attention in one kernel. Kernels that multiply for
// many experts at once are not among them, and the router's product is made to run again.
void recompute_operators(Unit& unit, int& products) {
  run_again(unit, true);
  if (unit.core_rows > 0) {
    if (unit.core_rows > 1) return;
    unit.again.back() = from_cache(unit.again.back());
    unit.memory.kept = unit.memory.core;
    return;
  }
  const bool product = unit.memory.result > 0;
  if (!product || ++products % 2 == 0) return;
  for (KernelRow& row : unit.again) row = from_cache(row);
  unit.memory.kept = unit.memory.result;
}

// Nobody needs what comes behind the last tensor that is kept; of a last product that is its input.
void stop_early(std::vector<Unit>& units) {
  for (std::size_t i = units.size(); i-- > 0;) {
    Unit& unit = units[i];
    const bool product = unit.memory.result > 0;
    if (unit.memory.saved > 0 && !product) return;
    unit.again.clear();
    if (product) return;
    unit.called_again = false;
  }
}

// A router keeps its balancing loss by name, and with it the graph that recomputation built up to
// there: its tensors were never asked for backward, and wait until the loss of the next forward
// pass takes its place.
void linger(std::vector<Unit>& units) {
  const auto router = std::find_if(units.begin(), units.end(),
                                   [](const Unit& unit) { return unit.role == Role::router; });
  if (router == units.end()) return;
  for (auto unit = units.begin(); unit <= router; ++unit) unit->lingers = unit->called_again;
}

}  // namespace

bool stops_early(const Stack& stack, const Strategy& strategy) {
  return !strategy.reentrant.value_or(stack.reentrant) && !loses_type_again(stack, strategy);
}

bool is_checkpointed(const Strategy& strategy, std::int64_t layer) {
  const auto chosen_before = [&](std::int64_t layers) {
    return std::floor(static_cast<double>(layers) / strategy.checkpoint_every + 1e-9);
  };
  return chosen_before(layer + 1) > chosen_before(layer);
}

void checkpoint_layer(std::vector<Unit>& units, const Stack& stack, const Strategy& strategy,
                      double input_bytes, std::int64_t layer) {
  const Checkpointing way =
      is_checkpointed(strategy, layer) ? strategy.checkpointing : Checkpointing::none;
  int products = 0;
  for (Unit& unit : units) {
    switch (way) {
      case Checkpointing::none:
        unit.memory.kept = unit.memory.saved;
        break;
      case Checkpointing::selective:
        break;
      case Checkpointing::operators:
        recompute_operators(unit, products);
        break;
      case Checkpointing::full:
        run_again(unit, true);
        break;
    }
  }
  if (way == Checkpointing::selective) recompute_modules(units, strategy.recomputed);
  if (way == Checkpointing::full || way == Checkpointing::operators)
    units.front().memory.input = input_bytes;
  if (way == Checkpointing::full && stops_early(stack, strategy)) stop_early(units);
  if (way == Checkpointing::full && stack.routers_keep_graph) linger(units);
}

}  // namespace stepsim
