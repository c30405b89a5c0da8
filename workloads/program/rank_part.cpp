#include "workloads/program/rank_part.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/base/lists.hpp"
#include "workloads/layers/rank_share.hpp"
#include "workloads/strategy/row_lengths.hpp"

namespace stepsim {
namespace {

void for_each_unit(const ModelUnits& units, const auto& look) {
  look(units.embedding);
  for (std::size_t layer = 0; layer < units.layers.size(); ++layer)
    for (const Unit& unit : units.like(layer)) look(unit);
  for (const Unit& unit : units.head) look(unit);
}

// Matrices of one parameter: what reads one input is stored side by side.
Role first_of_parameter(Role role) {
  switch (role) {
    case Role::key:
    case Role::value:
      return Role::query;
    case Role::up:
      return Role::gate;
    case Role::shared_up:
      return Role::shared_gate;
    default:
      return role;
  }
}

double experts_of_rank(const StepInput& input) {
  return static_cast<double>(input.model.experts->count) /
         static_cast<double>(input.strategy.experts.parallel);
}

bool is_matrix_of_layer(const Unit& unit) {
  return unit.kind == TensorClass::dense || unit.kind == TensorClass::expert;
}

// Counts the elements of one matrix for each shape; the two of an expert are one here.
double elements_of_shapes(const StepInput& input, const ModelUnits& units) {
  std::set<std::pair<Role, double>> met;
  for (std::size_t layer = 0; layer < units.layers.size(); ++layer) {
    std::map<Role, double> parameters;
    for (const Unit& unit : units.like(layer)) {
      if (!is_matrix_of_layer(unit) || !unit.trained || unit.role == Role::router) continue;
      const double alike = unit.role == Role::experts ? experts_of_rank(input) : 1;
      parameters[first_of_parameter(unit.role)] += unit.elements() / alike;
    }
    met.insert(parameters.begin(), parameters.end());
  }
  double sum = 0;
  for (const auto& [role, elements] : met) sum += elements;
  return sum;
}

TensorSizes sizes_of(const StepInput& input, const ModelUnits& units) {
  TensorSizes sizes;
  for_each_unit(units, [&](const Unit& unit) {
    for (const double elements : unit.tensors) {
      sizes.largest = std::max(sizes.largest, elements);
      if (elements <= input.strategy.zero.persistence_threshold)
        sizes.persistent += elements * static_cast<double>(unit.times);
    }
    sizes.narrow += unit.narrow * static_cast<double>(unit.times);
    const double owners = std::max(1, unit.owners);
    sizes.largest_module = std::max(sizes.largest_module, unit.elements() / owners);
  });
  if (input.stack.gradient_placeholders) sizes.shapes = elements_of_shapes(input, units);
  return sizes;
}

// Returns the shares where some of it is frozen: all elements as they are stored, in units of 16
// bits, and those that have gradients.
Shares shares_by_units(const StepInput& input, const Mesh& mesh, const ModelUnits& units) {
  Shares shares;
  for_each_unit(units, [&](const Unit& unit) {
    const bool sent = unit.kind == TensorClass::expert && sends_tokens(input.strategy);
    const double times = static_cast<double>(unit.times),
                 shards = static_cast<double>(sent ? mesh.expert_shard : mesh.shard);
    shares.whole += unit.elements() * times;
    shares.shard += unit.elements() * times / shards;
    shares.trained += unit.trained_elements() * times;
    shares.updated += unit.trained_elements() * times / shards;
  });
  return shares;
}

Shares shares_of(const StepInput& input, const Mesh& mesh, const ModelUnits& units) {
  if (input.strategy.lora.rank > 0 || input.model.tower) return shares_by_units(input, mesh, units);
  const double shards = static_cast<double>(mesh.shard);
  const ParameterCount count = count_parameters(model_of_rank(input.model, input.strategy));
  const double experts = static_cast<double>(count.of(TensorClass::expert));
  const double all = static_cast<double>(count.total());
  if (!sends_tokens(input.strategy)) return {all, all / shards, all, all / shards};
  // Experts have fewer copies, and so fewer ranks to share one among.
  const double held = experts / static_cast<double>(mesh.experts);
  const double local = all - experts + held;
  const double shard = (all - experts) / shards + held / static_cast<double>(mesh.expert_shard);
  return {local, shard, local, shard};
}

}  // namespace

std::vector<double> trained_tensors(const ModelUnits& units) {
  std::vector<double> tensors;
  for_each_unit(units, [&](const Unit& unit) {
    for (std::int64_t i = 0; unit.trained && i < unit.times; ++i) append(tensors, unit.tensors);
  });
  return tensors;
}

RankPart rank_part(const StepInput& whole, LayersWith which) {
  StepInput input = whole;
  input.job = usual_rows(whole.job, whole.strategy, whole.cluster);
  RankPart part{input, mesh_of(input.strategy, input.cluster), units_of(input, which), {}, {}};
  part.tensors = sizes_of(input, part.units);
  part.shares = shares_of(input, part.mesh, part.units);
  const Optimizer& optimizer = input.strategy.optimizer;
  if (optimizer.factored || optimizer.orthogonal)
    part.matrices = matrices_of(input, part.mesh, part.units);
  if (optimizer.orthogonal)
    std::erase_if(part.matrices, [](const Matrix& matrix) { return !matrix.of_layers; });
  return part;
}

}  // namespace stepsim
