#include "workloads/program/used_operators.hpp"

#include <algorithm>

#include "workloads/program/visits.hpp"

namespace stepsim {

UsedOperators::UsedOperators(const StepInput& input) {
  const ModelUnits units = units_of(input);
  const auto add_unit = [&](const Unit& unit) {
    add(unit.forward);
    add(unit.backward);
  };
  add_unit(units.embedding);
  for (const std::vector<Unit>& layer : units.layers)
    for (const Unit& unit : layer) add_unit(unit);
  for (const Unit& unit : units.head) add_unit(unit);
  // A divided loss adds to what the loss itself counts.
  if (ranks_of_head(input.strategy.tensor_parallel) > 1)
    used_.set(static_cast<std::size_t>(Operator::cross_entropy_divided));
  if (used_.test(static_cast<std::size_t>(Operator::cross_entropy_words))) {
    used_.set(static_cast<std::size_t>(Operator::cross_entropy_casts));
    used_.set(static_cast<std::size_t>(Operator::cross_entropy_sums));
  }
  optimizer_ = input.strategy.optimizer.name;
  counts_update_ = input.strategy.update_kernels != UpdateKernels::fused ||
                   input.strategy.offload.adam == HostAdam::operators;
}

void UsedOperators::add(const std::vector<KernelRow>& rows) {
  for (const KernelRow& row : rows)
    if (row.op != Operator::none) used_.set(static_cast<std::size_t>(row.op));
}

bool UsedOperators::has(std::string_view name) const {
  const std::string_view first = name.substr(0, name.find('.'));
  if (first == optimizer_)
    return counts_update_ || name.ends_with(".bytes") || name.find(".orthogonal.") != name.npos;
  const auto place = std::find(operator_names.begin(), operator_names.end(), first);
  return place == operator_names.end() ||
         used_.test(static_cast<std::size_t>(place - operator_names.begin()));
}

}  // namespace stepsim
