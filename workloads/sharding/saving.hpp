// A job writes this between two steps so that it can go on later, and reads it when it does.
#pragma once

#include <algorithm>

#include "workloads/program/program_builder.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {

// These are the bytes of the parts of a checkpoint, and its files, as Hugging Face's trainer has
// them: the model in one piece as it is published, and beside it what DeepSpeed or PyTorch need to
// go on.
struct Checkpoint {
  double weights = 0;       // of each rank that writes a part of the model in one piece
  double model_states = 0;  // stages 0 to 2: the same again, in DeepSpeed's own file
  double experts = 0;       // of each rank that writes its experts, twice likewise
  double states = 0;        // of each rank that owns a shard
  Rank writers = 1;         // of the model: ranks that hold it between them
  Rank expert_writers = 0, owners = 1;
  double files = 0;

  double bytes() const {
    return writers * (weights + model_states) + expert_writers * experts + owners * states;
  }
  // On the drives of the first node, which has most of it.
  double on_a_node(Rank gpus) const {
    return std::min(writers, gpus) * (weights + model_states) +
           std::min(expert_writers, gpus) * experts + std::min(owners, gpus) * states;
  }
};
Checkpoint checkpoint_of(const RankPart& rank);

struct MomentProgram {
  Traffic traffic;
  OpGraph graph;
};
MomentProgram build_save(const StepInput& input, Folding folding);
// Reads the states, then comes to where the data was: `skipped` micro-batches of each rank.
MomentProgram build_resume(const StepInput& input, double skipped, Folding folding);

}  // namespace stepsim
