// A step whose ranks are stages of a pipeline: a program for each stage, linked by what they send
// each other.
#pragma once

#include "workloads/program/program_builder.hpp"
#include "workloads/sharding/resident.hpp"

namespace stepsim {

// Ranks that do the same part of a model.
struct StepStage {
  Rank lane = 0;  // one that stands for them
  Model model;    // of their own
  Resident resident;
};

struct PipelineRanks {
  Traffic traffic;
  std::vector<StepStage> stages;
};

// Bytes that a rank sends for a micro-batch at the end of its piece of the model.
double message_bytes(const StepInput& input);

// Returns the ranks of a pipeline. `rank` is that of the whole model: it says how ranks are dealt
// out and what they send each other.
PipelineRanks pipeline_ranks(const RankPart& rank, Folding folding);
OpGraph write_pipeline(const RankPart& rank, const Traffic& traffic, Written written);

}  // namespace stepsim
