// This reads the batch sizes of a DeepSpeed file.
#pragma once

#include "scenarios/foreign/deepspeed/deepspeed.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// Reads train_batch = micro x accumulation x ranks; any two give the third by whole division, and
// the product must hold. "auto" is what the trainer says; what is absent DeepSpeed makes up itself:
// one micro-batch to a step. The product gives way to a factor that was set.
void read_batch(const Table& root, const DeepSpeedQuestion& question, DeepSpeedImport& result);

// Returns whether a key, or a whole block that holds it, was set over the scenario.
bool was_set(const DeepSpeedQuestion& question, std::string_view key);

}  // namespace stepsim
