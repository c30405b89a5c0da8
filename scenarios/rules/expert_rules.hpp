// These rules say how a strategy may deal experts to ranks, and which ways go together.
#pragma once

#include "scenarios/rules/parallel_rules.hpp"

namespace stepsim {

// A name that is not in the catalogue is noted already; rules that need it are left out.
struct Known {
  bool cluster = false, model = false;
};

// `moe` is the table of a strategy.
void check_experts(const Table& moe, const StepSplit& sharing, Known known);

}  // namespace stepsim
