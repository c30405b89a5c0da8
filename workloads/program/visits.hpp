// The calls of a micro-batch in order: which unit, in which layer and pass.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/labels.hpp"
#include "workloads/layers/units.hpp"
#include "workloads/program/step_input.hpp"

namespace stepsim {

// These are the units of a model, layer by layer; a Visit points into them.
struct ModelUnits {
  Unit embedding;
  bool embeds = true;  // a later pipeline stage has no embedding
  std::vector<std::vector<Unit>> layers;
  std::vector<std::size_t> alike;  // of each layer the first one that is like it
  std::vector<Unit> head;
  std::size_t of_tower = 0;  // so many layers come before those of the language model

  const std::vector<Unit>& like(std::size_t layer) const { return layers[alike[layer]]; }
};
// If nothing visits them, the units of one layer of each kind are enough: those of the first.
enum class LayersWith : std::uint8_t { own_units, units_once };
ModelUnits units_of(const StepInput& input, LayersWith which = LayersWith::own_units);

// A visit is one call of a unit. `instance` is the same for all calls of the same parameters.
struct Visit {
  const Unit* unit = nullptr;
  std::uint32_t instance = 0;
  std::int16_t layer = -1;
  Phase phase = Phase::forward;
  bool frozen = false;  // of a reference model: nothing is kept for a backward pass
};

// The policy runs forward, a reference model after it, then backward layer by layer, each after
// what of it is computed again. Passes of the policy that only score come first.
struct OtherPasses {
  const ModelUnits* reference = nullptr;
  std::int64_t of_reference = 0;
  std::int64_t without_gradients = 0;  // of the policy
  bool trains = true;                  // else these are all
};
// Returns the other passes of the job's method; `reference` are the units of a reference model,
// where it has one.
OtherPasses other_passes(const Job& job, const ModelUnits& reference);
std::vector<Visit> visits_of(const ModelUnits& units, const OtherPasses& others = {});

}  // namespace stepsim
