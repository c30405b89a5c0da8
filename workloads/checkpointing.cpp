#include "workloads/checkpointing.hpp"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

// Only attention's own kernels run again, from queries, keys and values that were kept.
void recompute_attention(Unit& unit) {
  unit.kept_bytes = unit.saved_bytes - unit.core_bytes;
  if (unit.core_rows == 0) return;
  unit.called_again = true;
  unit.again.assign(unit.forward.end() - unit.core_rows, unit.forward.end());
}

// A kernel whose result was kept is an operator that finds it, and no kernel.
KernelRow from_cache(KernelRow row) {
  const double operators = row.operators.value_or(row.launches);
  return {row.name, row.kind, 0, 0, 0, operators, row.share};
}

// The policy names single matrix products and attention in one kernel. Kernels that multiply for
// many experts at once are not among them, and the router's product is made to run again.
void recompute_operators(Unit& unit, int& products) {
  unit.called_again = true;
  unit.again = unit.forward;
  if (unit.core_rows > 0) {
    if (unit.core_rows > 1) return;
    unit.again.back() = from_cache(unit.again.back());
    unit.kept_bytes = unit.core_bytes;
    return;
  }
  const bool product = unit.result_bytes > 0;
  if (!product || ++products % 2 == 0) return;
  for (KernelRow& row : unit.again) row = from_cache(row);
  unit.kept_bytes = unit.result_bytes;
}

// Nobody needs what comes behind the last tensor that is kept; of a last product that is its input.
void stop_early(std::vector<Unit>& units) {
  for (std::size_t i = units.size(); i-- > 0;) {
    Unit& unit = units[i];
    const bool product = unit.result_bytes > 0;
    if (unit.saved_bytes > 0 && !product) return;
    unit.again.clear();
    if (product) return;
    unit.called_again = false;
  }
}

}  // namespace

void checkpoint_layer(std::vector<Unit>& units, const Stack& stack, const Strategy& strategy,
                      double input_bytes, std::int64_t layer) {
  const auto chosen_before = [&](std::int64_t layers) {
    return std::floor(static_cast<double>(layers) / strategy.checkpoint_every + 1e-9);
  };
  const bool chosen = chosen_before(layer + 1) > chosen_before(layer);
  const Checkpointing way = chosen ? strategy.checkpointing : Checkpointing::none;
  int products = 0;
  for (Unit& unit : units) {
    switch (way) {
      case Checkpointing::none:
        unit.kept_bytes = unit.saved_bytes;
        break;
      case Checkpointing::selective:
        recompute_attention(unit);
        break;
      case Checkpointing::operators:
        recompute_operators(unit, products);
        break;
      case Checkpointing::full:
        unit.called_again = true;
        unit.again = unit.forward;
        break;
    }
  }
  if (way == Checkpointing::full || way == Checkpointing::operators)
    units.front().input_bytes = input_bytes;
  if (way == Checkpointing::full && stack.recompute_stops_early) stop_early(units);
}

}  // namespace stepsim
