// What `memory` says of a training step.
#pragma once

#include "cli/result.hpp"

namespace stepsim {

inline constexpr ResultKind memory_kind{"memory", 1,
                                        "`stepsim memory`: what a training step needs"};
Records memory_sample();

}  // namespace stepsim
