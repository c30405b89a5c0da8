// This reads GRPO of Megatron-SWIFT: learners by Megatron, engines of vLLM on the same GPUs or as a
// server.
#pragma once

#include "scenarios/foreign/table/assumed.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"

namespace stepsim {

// The GPUs that learners and a server beside them need.
GpusOfSource swift_grpo_machine(MappedSource& source, GpusOfSource learners);
// Puts engines, answers and batches; model, machine and stack are put already.
void put_swift_grpo(MappedSource& source, const GpusOfSource& learners);

}  // namespace stepsim
