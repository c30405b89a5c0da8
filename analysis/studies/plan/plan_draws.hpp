// Draws of the constants say how sure the best plans are, and what would put the second first.
#pragma once

#include <functional>

#include "analysis/studies/plan/plan_search.hpp"

namespace stepsim {

// Adds what draws say of the best plans of an answer: as many draws as are asked for, or fewer
// where `stop` ends them.
void add_draws(const PlanSpace& space, const PlanSearch& search, const std::function<bool()>& stop,
               PlanAnswer& answer);

}  // namespace stepsim
