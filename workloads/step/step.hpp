// This writes one optimizer step of a training job as a program.
#pragma once

#include <optional>

#include "workloads/pipeline/pipeline.hpp"
#include "workloads/step/model_flops.hpp"

namespace stepsim {

struct StepProgram {
  Traffic traffic;
  OpGraph graph;
  ModelFlops flops;               // of a rank
  double tokens = 0;              // of all ranks, without padding
  Resident resident;              // before the step begins and after it
  std::vector<StepStage> stages;  // of a pipeline; empty: all ranks do the same
};

// Returns the input of one pass over a micro-batch of rows held back; nothing where a job has none.
std::optional<StepInput> evaluation_of(const StepInput& input);

StepProgram build_step(const StepInput& input, Folding folding, Written written = Written::whole);
// These do the same in two parts: all but the graph, which may then be written more than once, with
// more or fewer micro-batches.
StepProgram prepare_step(const RankPart& rank, Folding folding);
void write_step(StepProgram& program, const RankPart& rank, Written written = Written::whole);

}  // namespace stepsim
