// The stages of a pipeline in turns. The writer of a step and the bound of its time do the same
// acts in the same order, so that neither can wait for what the other does not.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "workloads/pipeline/schedule.hpp"

namespace stepsim {

// False: the stage cannot do this act before another stage has gone on.
using DoAct = std::function<bool(std::int64_t stage, const StageAct& act)>;

// Does the acts of each stage in their order, each stage as far as the others let it. Throws
// std::logic_error where all wait for each other, with the act at which each stage stands.
void take_turns(const std::vector<std::vector<StageAct>>& acts, const DoAct& done);

}  // namespace stepsim
