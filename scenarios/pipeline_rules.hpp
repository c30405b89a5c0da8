// What a scenario says about pipeline stages, and what has to be true of it.
#pragma once

#include <string>
#include <vector>

#include "scenarios/parallel_rules.hpp"

namespace stepsim {

PipelineParallel read_pipeline(const Table& table);

// Notes at `strategy`, the table of that name, whatever does not come out even or together.
void check_pipeline(const Table& strategy, const Sharing& sharing);

// What is allowed and wasteful.
std::vector<std::string> pipeline_notes(const PipelineParallel& pipeline, const Job& job);

}  // namespace stepsim
