// This fits a few unknowns within bounds by robust least squares: it is the only user of NLopt.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stepsim {

// A fit has the least sum over rows of weight x loss(residual + slopes * x), plus (x / prior)^2 for
// each unknown; the loss is half a square up to `turn` and grows in proportion beyond. x stays
// within low and high.
struct RobustFit {
  struct Row {
    double residual = 0;
    double weight = 1;
    std::vector<double> slopes;
  };
  std::vector<Row> rows;
  std::vector<double> low, high;
  double turn = 0.1;
  double prior = 1;
};
double loss_of(const RobustFit& fit, const std::vector<double>& x);
// Returns where the loss is least, starting from zero moved into the bounds. It returns the same
// bits for the same input.
std::vector<double> solve(const RobustFit& fit);

// Returns each value times e to the power of its step: the unknowns of a fit are logarithms of
// constants.
std::vector<double> moved(const std::vector<double>& values, const std::vector<double>& step);

// This says how far off the rows of one source are, as median absolute errors.
struct FittedSource {
  std::string name;
  std::size_t rows = 0;
  double stated = 0, fitted = 0;
  double held_out = 0;  // fitted without them; 0: they are all there is
};

}  // namespace stepsim
