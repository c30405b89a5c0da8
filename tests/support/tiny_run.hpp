// A run small enough to reckon by hand, which has something in every column of a run file.
#pragma once

#include "sim/trace.hpp"

namespace stepsim {

// Two ranks compute 1 s and 2 s, gather for 0.5 s, and rank 0 computes 0.5 s more. Rank 0 holds
// 3 GB from the first operation to the last, and 2 GB more during the gather.
Run tiny_run();

}  // namespace stepsim
