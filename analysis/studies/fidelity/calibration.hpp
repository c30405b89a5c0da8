// A calibration chooses the free constants of one stack so that predictions meet its measured rows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/studies/fidelity/row_validation.hpp"

namespace stepsim {

struct FreeConstant {
  std::string name;  // "kernels.gemm", as the stack's file spells it
  double low = 0, high = 0;
};

// A plan is what workloads/calibration/STACK.yaml says.
struct CalibrationPlan {
  std::string name;
  std::vector<std::string> stacks;  // the one that has its name, unless it says others; these share
                                    // a range of `unexplained` and leave nothing free
  std::string source;               // of the rows, as the fitted constants will cite it
  std::vector<std::string> tables;  // files below the catalogue
  std::vector<FreeConstant> free;
  double turn = 0.1;   // errors of the logarithm beyond this count in proportion, not squared
  double prior = 0.5;  // how far, as a logarithm, a constant strays at the price of one such error
};

struct FittedConstant {
  std::string name;
  Dimension dimension{};
  double before = 0;
  double value = 0;
  double low = 0, high = 0;  // where single rows would put it, eight of ten of them
};

struct HeldOutFamily {
  std::string name;
  double fitted = 0;    // median absolute error with all rows in the fit
  double held_out = 0;  // and with this family left out of it
};

struct Calibration {
  std::vector<FittedConstant> constants;
  std::vector<RowFamily> before, after;
  std::vector<HeldOutFamily> held_out;
  std::size_t rows = 0, runs = 0;  // rows with a time, and different scenarios among them
  std::uint32_t samples = 0;
  Range unexplained{1, 1};  // with this many draws, the constant's range
};
// Fits the stacks' constants. With draws, what their `unexplained` ranges over is found as well.
Calibration calibrate(const Catalogue& data, const CalibrationPlan& plan, std::uint32_t samples);

}  // namespace stepsim
