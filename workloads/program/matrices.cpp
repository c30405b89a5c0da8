#include "workloads/program/matrices.hpp"

#include <algorithm>

#include "workloads/layers/rank_share.hpp"

namespace stepsim {
namespace {

void add(std::vector<Matrix>& list, const Matrix& more) {
  if (more.elements() <= 0) return;
  const auto same = std::find_if(list.begin(), list.end(), [&](const Matrix& each) {
    return each.rows == more.rows && each.columns == more.columns && each.batch == more.batch &&
           each.experts == more.experts && each.of_layers == more.of_layers;
  });
  if (same == list.end())
    list.push_back(more);
  else
    same->count += more.count;
}

void add_part(std::vector<Matrix>& list, const Part& part, double holders) {
  if (part.in <= 0 || part.borrowed) return;
  const bool experts = part.kind == TensorClass::expert;
  const double copies = static_cast<double>(part.copies) / (experts ? holders : 1);
  add(list, {.rows = static_cast<double>(part.out),
             .columns = static_cast<double>(part.in),
             .batch = part.stacked ? copies : 1,
             .count = part.stacked ? 1 : copies,
             .experts = experts,
             .of_layers = part.kind != TensorClass::embedding &&
                          part.role != Role::convolution});  // whose tensors have three sides
}

// Adds a pair of low-rank matrices, each of which has as many rows or columns as the rank.
void add_adapters(std::vector<Matrix>& list, const Unit& unit, double rank) {
  if (!unit.adapter) return;
  for (const double elements : unit.tensors)
    add(list, {.rows = rank,
               .columns = elements / rank,
               .count = static_cast<double>(unit.times),
               .experts = unit.kind == TensorClass::expert});
}

}  // namespace

std::vector<Matrix> matrices_of(const StepInput& input, const Mesh& mesh, const ModelUnits& units) {
  std::vector<Matrix> list;
  const Strategy& s = input.strategy;
  if (s.lora.rank > 0) {
    for (std::size_t layer = 0; layer < units.layers.size(); ++layer)
      for (const Unit& unit : units.like(layer))
        add_adapters(list, unit, static_cast<double>(s.lora.rank));
    return list;
  }
  Model mine = model_of_rank(input.model, s);
  if (mine.experts) mine.experts->fused = is_fused(*mine.experts, s.experts.layout);
  const double holders = sends_tokens(s) ? static_cast<double>(mesh.experts) : 1;
  for (std::int64_t layer = 0; layer < mine.layers; ++layer)
    for (const Part& part : layer_parts(mine, layer)) add_part(list, part, holders);
  for (const Part& part : outer_parts(mine)) add_part(list, part, holders);
  return list;
}

}  // namespace stepsim
