// An explanation as a person or a program reads it.
#pragma once

#include <string>

#include "analysis/studies/explain/explain.hpp"
#include "cli/result_kinds.hpp"

namespace stepsim {

std::string explanation_text(const Explanation& explanation);
std::string explanation_csv(const Explanation& explanation);
Records explanation_records(const Explanation& explanation);

}  // namespace stepsim
