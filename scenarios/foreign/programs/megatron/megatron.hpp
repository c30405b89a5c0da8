// This reads arguments of Megatron-LM, and files of Megatron-Bridge, which say the same.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/foreign/table/mapped_source.hpp"
#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// `source` holds the arguments by their names ("num-layers"), or blocks of them
// ("model.num_layers"). Throws UserError with all that is wrong with it; what a scenario's reader
// checks is left to that.
Translation translate_megatron(const SourceQuestion& question, const Document& source);
// Megatron-SWIFT, whose arguments are Megatron's and some of its own.
Translation translate_megatron_swift(const SourceQuestion& question, const Document& source);

// Megatron-Core's settings of recomputation are called so. `said` is the granularity.
struct RecomputeKeys {
  std::string granularity{}, method{}, layers{}, modules{};
  std::int64_t stages = 1;
};
void put_recomputing(MappedSource& source, const RecomputeKeys& keys, const std::string& said);

struct MegatronDegrees {
  std::int64_t tensor = 1, stages = 1, context = 1;
};
MegatronDegrees megatron_degrees(MappedSource& source);

// This is meant where nothing is said.
struct MegatronDefaults {
  bool distributed = false, grouped = false, halves = false;
  std::string recompute = "none", dispatcher = "allgather";
  std::int64_t expert_tensor = 0;  // 0: like the layers
};
// Puts how the model is divided and computed, by Megatron's own arguments.
void put_megatron_division(MappedSource& source, const MegatronDegrees& degrees,
                           const MegatronDefaults& defaults);

}  // namespace stepsim
