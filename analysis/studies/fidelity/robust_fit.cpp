#include "analysis/studies/fidelity/robust_fit.hpp"

#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

namespace stepsim {
namespace {

constexpr double tolerance = 1e-7;
constexpr int most_evaluations = 20000;

double huber(double residual, double turn) {
  const double size = std::abs(residual);
  return size <= turn ? size * size / 2 : turn * (size - turn / 2);
}

double objective(unsigned count, const double* x, double* /*gradient*/, void* fit) {
  return loss_of(*static_cast<const RobustFit*>(fit), std::vector<double>(x, x + count));
}

}  // namespace

double loss_of(const RobustFit& fit, const std::vector<double>& x) {
  double sum = 0;
  for (const RobustFit::Row& row : fit.rows) {
    double residual = row.residual;
    for (std::size_t i = 0; i < x.size(); ++i) residual += row.slopes[i] * x[i];
    sum += row.weight * huber(residual, fit.turn);
  }
  for (const double each : x)
    sum += fit.turn * fit.turn / 2 * (each / fit.prior) * (each / fit.prior);
  return sum;
}

std::vector<double> solve(const RobustFit& fit) {
  const auto count = static_cast<unsigned>(fit.low.size());
  std::vector<double> x(count, 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::clamp(0.0, fit.low[i], fit.high[i]);
  RobustFit copy = fit;  // NLopt hands it back as it was given: not const
  const std::unique_ptr<std::remove_pointer_t<nlopt_opt>, void (*)(nlopt_opt)> optimiser(
      nlopt_create(NLOPT_LN_SBPLX, count), nlopt_destroy);
  nlopt_set_min_objective(optimiser.get(), objective, &copy);
  nlopt_set_lower_bounds(optimiser.get(), fit.low.data());
  nlopt_set_upper_bounds(optimiser.get(), fit.high.data());
  nlopt_set_xtol_rel(optimiser.get(), tolerance);
  nlopt_set_ftol_rel(optimiser.get(), tolerance);
  nlopt_set_maxeval(optimiser.get(), most_evaluations);
  double least = 0;
  if (nlopt_optimize(optimiser.get(), x.data(), &least) < 0)
    throw std::runtime_error("the optimiser failed");
  return x;
}

std::vector<double> moved(const std::vector<double>& values, const std::vector<double>& step) {
  std::vector<double> result = values;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] *= std::exp(step[i]);
  return result;
}

}  // namespace stepsim
