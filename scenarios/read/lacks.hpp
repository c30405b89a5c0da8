// Older boards lack what programs take for granted: bf16, TF32, FlashAttention.
#pragma once

#include "scenarios/scenario.hpp"

namespace stepsim {

// Puts in what the board does instead, and notes it: bf16 is worked off by 32-bit units, and where
// FlashAttention has no kernel PyTorch chooses another.
void lay_what_lacks(const Catalogue& data, Scenario& scenario);

}  // namespace stepsim
