// A budget limits how many operations a program may have: a larger one is refused before it is
// written.
#pragma once

#include <string_view>

namespace stepsim {

inline constexpr double usual_budget = 50e6;  // operations: 9 GB and a minute or two

// Throws UserError where a program that is being written has more than so many operations already:
// how many it will have is not known.
void require_within(double operations, double budget);

// Throws UserError where the program is too large. `less` says what would take less.
void require_budget(double operations, double budget, std::string_view less);

}  // namespace stepsim
