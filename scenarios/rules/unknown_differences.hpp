// These tell two scenarios apart and no prediction knows them: a comparison of the two cannot be
// decided where there are any.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace stepsim {

// Rows that are not packed, of which nothing says how long they are: they count as full.
bool has_open_rows(const Scenario& scenario);

struct ComparedScenario {
  std::string name;  // "A"
  const Scenario& scenario;
};
// Writes "peft_use_dora (not in A, true in B): a norm over each matrix", a line for each.
std::vector<std::string> unknown_differences(const ComparedScenario& a, const ComparedScenario& b);

}  // namespace stepsim
