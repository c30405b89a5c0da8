// A tower's layers over the patches of images, and what stands before and behind them.
#include <algorithm>

#include "workloads/layers/units.hpp"

namespace stepsim {
namespace {

// What all images of a micro-batch are to a tower.
struct Seen {
  double images = 0, tiles = 0, patches = 0, tokens = 0;
};

Seen seen_by(const Tower& tower, const Job& job) {
  const Picture picture = picture_of(tower, job.pixels);
  const double images = job.images * static_cast<double>(job.rows()),
               tiles = images * picture.tiles;
  return {images, tiles, tiles * picture.patches, images * picture.tokens};
}

// Patches attend to those of their tile or window, from all to all.
Load load_of_layer(const Tower& tower, const Model& layers, const Seen& seen, std::int64_t layer) {
  const double tile = seen.patches / std::max(seen.tiles, 1e-9);
  const double window = static_cast<double>(window_of(layers, layer));
  const double pairs = seen.patches * (window > 0 ? std::min(window, tile) : tile);
  return {.tokens = seen.patches,
          .attended = pairs,
          .in_rows = pairs,
          .in_squares = tower.window > 0 ? pairs : seen.patches * tile,
          .wanted = pairs,
          .masked = false};
}

Unit unit_of(const Tower& tower, const Part& part, const Stack& stack, const Seen& seen) {
  const double in = static_cast<double>(part.in), out = static_cast<double>(part.out),
               copies = static_cast<double>(part.copies);
  const bool behind = part.role == Role::projector || part.role == Role::projector_norm;
  const bool wide = out == static_cast<double>(tower.hidden);  // a norm of single patches
  const double rows = !behind || (part.in == 0 && wide) ? seen.patches : seen.tokens;
  Unit unit;
  unit.name = part.name;
  unit.role = part.role;
  unit.kind = part.kind;
  for (std::int64_t copy = 0; copy < part.copies; ++copy) {
    unit.tensors.push_back(static_cast<double>(part.weights()));
    if (part.bias) unit.tensors.push_back(out);
  }
  unit.owners = static_cast<int>(part.copies);
  if (part.role == Role::places) {
    // Each patch has its place added to it.
    const double width = static_cast<double>(tower.hidden);
    unit.forward = {counted(stack.operators, Operator::residual, rows, width)};
    unit.backward = unit.forward;
    unit.memory.gradient = bytes_16 * rows * width;
    return unit;
  }
  if (part.in > 0) {
    unit.forward = {gemm("linear", rows * copies, in, out)};
    if (part.role == Role::projector)
      unit.forward.push_back(
          counted(stack.operators, Operator::activation_ungated, rows * copies, out));
  } else {
    unit.forward = {counted(stack.operators, Operator::norm_fused, rows * copies, out)};
  }
  unit.backward = backward_of(unit.forward, stack.operators);
  unit.memory.saved = bytes_16 * rows * copies * (in + (part.in > 0 ? 0 : out));
  unit.memory.gradient = bytes_16 * rows * copies * (part.in > 0 ? in : out);
  return unit;
}

}  // namespace

std::vector<std::vector<Unit>> tower_units(const Tower& tower, const Stack& stack,
                                           const Strategy& strategy, const Job& job) {
  Strategy plain = strategy;  // adapters stand in the language model
  plain.lora = {};
  plain.tensor_parallel = {};
  plain.sequence_parallel = {};
  const Model layers = layers_of(tower);
  const Seen seen = seen_by(tower, job);
  std::vector<std::vector<Unit>> all;
  for (std::int64_t layer = 0; layer < tower.layers; ++layer)
    all.push_back(
        layer_units(layers, stack, plain, load_of_layer(tower, layers, seen, layer), layer));
  const auto add = [&](std::vector<Unit>& units, const std::vector<Part>& parts, bool before) {
    std::vector<Unit> made;
    for (const Part& part : parts)
      if (part.out > 0) made.push_back(unit_of(tower, part, stack, seen));
    units.insert(before ? units.begin() : units.end(), made.begin(), made.end());
  };
  add(all.front(), parts_before(tower), true);
  add(all.back(), parts_behind(tower), false);
  for (std::vector<Unit>& units : all)
    for (Unit& unit : units) {
      const bool projects = unit.role == Role::projector || unit.role == Role::projector_norm;
      unit.trained = projects ? strategy.vision.projector : strategy.vision.tower;
    }
  return all;
}

}  // namespace stepsim
