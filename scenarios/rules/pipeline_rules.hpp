// These rules say what has to be true of pipeline stages.
#pragma once

#include <string>
#include <vector>

#include "scenarios/rules/parallel_rules.hpp"

namespace stepsim {

// Notes at `strategy`, the table of that name, whatever does not come out even or together.
void check_pipeline(const Table& strategy, const StepSplit& sharing);

// Returns what is allowed and wasteful.
std::vector<std::string> pipeline_notes(const PipelineParallel& pipeline, const Job& job);

}  // namespace stepsim
