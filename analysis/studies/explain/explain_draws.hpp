// How sure an explanation is: both of its sides under draws of the constants.
#pragma once

#include "analysis/studies/explain/explain.hpp"

namespace stepsim {

// Adds the ranges of all rows and `draws`. `of_a`, `of_b`: what carries the causes, to choose whose
// ends are tried.
void add_draws(Explanation& explanation, const NamedStep& a, const NamedStep& b,
               const ExplainOptions& options, const ByCause<std::vector<Carrier>>& of_a,
               const ByCause<std::vector<Carrier>>& of_b);

}  // namespace stepsim
