// This reads how Megatron divides and computes a model, for all programs that hand it their
// arguments.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/foreign/table/assumed.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"

namespace stepsim {

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

// Returns the model as a config.json says it, in one line of YAML. What such a file cannot say is
// noted as not modelled, and what is missing as a problem. `longest` is the length that the job's
// rows have at the least.
std::string described_model(MappedSource& source, std::int64_t longest = 1);

// The GPUs that learners and a server beside them need.
GpusOfSource swift_grpo_machine(MappedSource& source, GpusOfSource learners);
// Puts engines, answers and batches; model, machine and stack are put already.
void put_swift_grpo(MappedSource& source, const GpusOfSource& learners);

}  // namespace stepsim
