// A calibration has two files: the plan that it follows, and the stack that it writes.
#pragma once

#include "analysis/studies/fidelity/calibration.hpp"

namespace stepsim {

CalibrationPlan read_calibration_plan(const Catalogue& data, const std::string& name);

// A stack's own file with the fitted values in it, and everything else as it was.
std::string fitted_stack_file(const Catalogue& data, const std::string& stack,
                              const CalibrationPlan& plan, const Calibration& calibration);

}  // namespace stepsim
