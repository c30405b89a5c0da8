// This says how sure an explanation is, by both of its sides under draws of the constants.
#pragma once

#include "analysis/studies/explain/explain.hpp"

namespace stepsim {

// Adds the ranges of all rows and `draws`. `of_a` and `of_b` are the constants that carry the
// causes: the strongest are tried at both ends of their ranges.
void add_draws(Explanation& explanation, const NamedStep& a, const NamedStep& b,
               const ExplainOptions& options, const ByCause<std::vector<Carrier>>& of_a,
               const ByCause<std::vector<Carrier>>& of_b);

}  // namespace stepsim
