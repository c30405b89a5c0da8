#include "workloads/layers/routing.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace stepsim {
namespace {

// Where the standard normal distribution reaches `probability`, by halving.
double normal_quantile(double probability) {
  double low = -10, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    const double below = std::erfc(-middle / std::numbers::sqrt2) / 2;
    (below < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

std::vector<double> expert_shares(std::int64_t experts, double skew) {
  const double count = static_cast<double>(experts);
  std::vector<double> shares(static_cast<std::size_t>(experts), 1 / count);
  if (skew <= 0) return shares;
  const double deviation = std::sqrt(std::log1p(skew * skew));
  for (std::size_t i = 0; i < shares.size(); ++i)
    shares[i] = std::exp(deviation * normal_quantile((static_cast<double>(i) + 0.5) / count));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

double imbalance(std::int64_t experts, double skew) {
  return expert_shares(experts, skew).back() * static_cast<double>(experts);
}

double groups_met(std::int64_t experts, std::int64_t per_token, double groups) {
  const double all = static_cast<double>(experts), outside = all - all / groups;
  double missed = 1;  // by all choices of a token
  for (std::int64_t i = 0; i < per_token; ++i) {
    const double chosen = static_cast<double>(i);
    missed *= std::max(0.0, outside - chosen) / (all - chosen);
  }
  return groups * (1 - missed);
}

}  // namespace stepsim
