#include "analysis/studies/anchor/posterior.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scenarios/read/anchor.hpp"

namespace stepsim {
namespace {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double long_tailed(double distance) {
  return std::pow(1 + distance * distance / 3, -2);
}

double AnchorErrors::carried(double runs) const {
  const double own = single * single + measured * measured;
  return runs * shared * shared / (runs * shared * shared + own);
}

double AnchorErrors::another_run(double runs) const {
  return std::sqrt(shared * shared * (1 - carried(runs)) + single * single);
}

double AnchorErrors::measured_run(double runs) const {
  return std::hypot(another_run(runs), measured);
}

std::vector<double> weights_of(std::span<const Ratios> figures) {
  std::vector<double> weights(std::ranges::max(mapped(figures, &Ratios::size)), 1);
  for (const Ratios& distances : figures)
    for (std::size_t i = 0; i < distances.size(); ++i) weights[i] *= long_tailed(distances[i]);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

double effective_draws(std::span<const double> weights) {
  return 1 / std::inner_product(weights.begin(), weights.end(), weights.begin(), 0.0);
}

Ratios centred(Ratios ratios, double stated) {
  const double off = stated - mean(ratios);
  for (double& each : ratios) each += off;
  return ratios;
}

std::shared_ptr<const WeightedDraws> draws_before(std::uint32_t count, std::uint64_t seed) {
  auto draws = std::make_shared<WeightedDraws>();
  draws->seed = seed;
  draws->of = count;
  draws->of_site = constants_of_site();
  for (std::uint32_t i = 0; i < count; ++i) draws->draws.push_back({i, 1.0 / count, 1});
  return draws;
}

double weighted_quantile(std::span<const double> values, std::span<const double> weights,
                         double share) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  double left = share;
  for (const std::size_t i : order) {
    left -= weights[i];
    if (left < 0) return values[i];
  }
  return order.empty() ? 0 : values[order.back()];
}

}  // namespace stepsim
