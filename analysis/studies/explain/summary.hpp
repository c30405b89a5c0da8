// This puts an explanation into one sentence.
#pragma once

#include <string>

#include "analysis/studies/explain/explain.hpp"

namespace stepsim {

// Writes "A takes 72.1 s longer than B (102 s against 29.7 s), above all in optimizer (+69.0 s),
// and strategy.zero_optimization.sub_group_size (0 in A, 1e9 in B) carries 78.1 s of that: with
// that alone as in B, A takes 23.8 s."
std::string summary_text(const Explanation& explanation);
// Writes "measured: A 115 s, B 45.0 s, 70.0 s apart; predicted: 72.1 s apart"; "" where nothing
// was.
std::string measured_text(const Explanation& explanation);

}  // namespace stepsim
