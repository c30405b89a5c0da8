// Figures of a step whose ranks are stages of a pipeline, and do not all do the same.
#pragma once

#include <functional>

#include "analysis/breakdown.hpp"
#include "analysis/studies/predict/footprint.hpp"

namespace stepsim {

// Returns the footprint of the stage with least memory left; that of all ranks where all do the
// same. `step` gives the timeline of a replayed rank.
Footprint fullest_footprint(const Scenario& scenario, const StepProgram& program,
                            const std::function<Timeline(Rank)>& step);

// Returns the mean of all stages, so that rows still add up to the step.
Breakdown mean_breakdown(const std::vector<StepStage>& stages, const OpGraph& graph,
                         const Trace& trace);

}  // namespace stepsim
