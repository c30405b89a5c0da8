#include "workloads/program/tensors.hpp"

#include <algorithm>

#include "workloads/program/visits.hpp"

namespace stepsim {

TensorSizes tensors_of(const StepInput& input) {
  TensorSizes sizes;
  const auto add = [&](const Unit& unit) {
    for (const double elements : unit.tensors) {
      sizes.largest = std::max(sizes.largest, elements);
      if (elements <= input.strategy.zero.persistence_threshold)
        sizes.persistent += elements * static_cast<double>(unit.times);
    }
    const double owners = std::max(1, unit.owners);
    sizes.largest_module = std::max(sizes.largest_module, unit.elements() / owners);
  };
  const ModelUnits units = units_of(input);
  add(units.embedding);
  for (const std::vector<Unit>& layer : units.layers)
    for (const Unit& unit : layer) add(unit);
  for (const Unit& unit : units.head) add(unit);
  return sizes;
}

}  // namespace stepsim
