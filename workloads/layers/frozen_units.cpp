#include "workloads/layers/frozen_units.hpp"

#include <algorithm>

#include "workloads/layers/layer_writer.hpp"

namespace stepsim {
namespace {

bool multiplies(const KernelRow& row) {
  return row.kind == KernelClass::gemm || row.kind == KernelClass::grouped_gemm;
}

// Returns whether the unit lies between products and is as wide as the embedding: those of
// attention and of the feed-forward part give 16 bits.
bool is_as_wide_as_embedding(const Unit& unit) {
  return unit.kind == TensorClass::norm || unit.role == Role::attention_residual ||
         unit.role == Role::feed_forward_residual || unit.kind == TensorClass::embedding;
}

// Returns a cast that reads 32 bits and writes 16, or the other way round.
KernelRow cast_row(std::string_view name, double numbers) {
  return memory(name, (bytes_32 + bytes_16) * numbers, 1);
}

void widen(Unit& unit) {
  const double stored = unit.elements();
  const bool packed = unit.packed;
  if (!packed)
    for (double& tensor : unit.tensors) tensor *= bytes_32 / bytes_16;
  const auto product = std::ranges::find_if(unit.forward, multiplies);
  if (product == unit.forward.end()) {
    if (!is_as_wide_as_embedding(unit)) return;
    for (KernelRow& row : unit.forward) row.bytes *= bytes_32 / bytes_16;
    for (KernelRow& row : unit.backward) row.bytes *= bytes_32 / bytes_16;
    return;
  }
  if (packed) {  // else an adapter beside it casts the input in any case
    const double inputs = product->rows * product->depth;
    unit.forward.insert(unit.forward.begin(), cast_row("cast_input", inputs));
    unit.backward.push_back(cast_row("cast_gradient", inputs));
    return;
  }
  unit.forward.insert(unit.forward.begin(), cast_row("cast_weights", stored));
  unit.memory.saved += bytes_16 * stored;  // the backward pass multiplies with it
}

}  // namespace

bool widens_frozen(const Strategy& strategy) {
  return strategy.lora.rank > 0 && strategy.lora.frozen == LoraFrozen::fp32 &&
         strategy.sharding == Sharding::zero0;
}

void widen_frozen(std::span<Unit> units, const Strategy& strategy) {
  if (!widens_frozen(strategy)) return;
  for (Unit& unit : units)
    if (!unit.trained) widen(unit);
}

}  // namespace stepsim
