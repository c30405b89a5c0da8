// This finds what a learner, an engine and a host hold at three moments: when the engines have
// started, at the peak of training, and at the peak of a weight sync.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/grpo/grpo_costs.hpp"

namespace stepsim {

struct MomentBytes {
  double start = 0, training = 0, sync = 0;

  double most() const;
};

struct GrpoMemory {
  MomentBytes learner, engine, host;  // of one GPU, one GPU, one node
  double learner_capacity = 0, engine_capacity = 0, host_capacity = 0;
  double cache_tokens = 0;      // of one engine
  double full_sequence = 0;     // of them, of one of full length with its states
  double cached_sequences = 0;  // of full length

  bool holds_one() const;  // a response of full length fits

  // This says what does not fit first; nothing: all does.
  std::optional<std::string> failure;
};

// Finds the memory without any replay: the peak of training is that of a full micro-batch in
// program order.
GrpoMemory grpo_memory(const Scenario& scenario);

}  // namespace stepsim
