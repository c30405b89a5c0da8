#include "workloads/layers/routing.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

namespace stepsim {
namespace {

// Returns where the standard normal distribution reaches `probability`, by halving.
double normal_quantile(double probability) {
  double low = -10, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    const double below = std::erfc(-middle / std::numbers::sqrt2) / 2;
    (below < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Returns the quantiles of the middles of so many equal parts. They are remembered: each step of a
// model with experts asks for the same ones.
const std::vector<double>& normal_quantiles(std::int64_t parts) {
  thread_local std::map<std::int64_t, std::vector<double>> known;
  std::vector<double>& list = known[parts];
  for (auto i = std::ssize(list); i < parts; ++i)
    list.push_back(normal_quantile((static_cast<double>(i) + 0.5) / static_cast<double>(parts)));
  return list;
}

}  // namespace

std::vector<double> expert_shares(std::int64_t experts, double skew) {
  const double count = static_cast<double>(experts);
  std::vector<double> shares(static_cast<std::size_t>(experts), 1 / count);
  if (skew <= 0) return shares;
  const double deviation = std::sqrt(std::log1p(skew * skew));
  const std::vector<double>& quantiles = normal_quantiles(experts);
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = std::exp(deviation * quantiles[i]);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

double imbalance(std::int64_t experts, double skew) {
  return expert_shares(experts, skew).back() * static_cast<double>(experts);
}

double kept_share(std::int64_t experts, double skew, double most) {
  if (most <= 0) return 1;
  double kept = 0;
  for (const double share : expert_shares(experts, skew))
    kept += std::min(share, most / static_cast<double>(experts));
  return kept;
}

ChosenGroups chosen_groups(const Experts& experts, const ExpertStrategy& strategy) {
  const double per_token = static_cast<double>(experts.per_token);
  if (strategy.neighbours) return {1, static_cast<double>(experts.count) / per_token};
  return {static_cast<double>(experts.groups_chosen), static_cast<double>(experts.groups)};
}

double parts_met(std::int64_t experts, std::int64_t per_token, double parts,
                 const ChosenGroups& groups) {
  const double all = static_cast<double>(experts), pool = all * groups.chosen / groups.of;
  const auto met = [&](double held) {  // by a choice out of the pool, of which a part has so many
    double missed = 1;
    for (std::int64_t i = 0; i < per_token; ++i) {
      const double before = static_cast<double>(i);
      missed *= std::max(0.0, pool - held - before) / (pool - before);
    }
    return 1 - missed;
  };
  if (parts >= groups.of) return parts * groups.chosen / groups.of * met(all / parts);
  // A token meets the part if some of the part's own groups are among those chosen.
  const auto ways = [](double n, double k) {
    return k > n ? 0 : std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1));
  };
  const double own = groups.of / parts;
  double sum = 0;
  const auto most = static_cast<int>(std::min(own, groups.chosen));
  for (int number = 1; number <= most; ++number) {
    const double some = number;
    sum += ways(own, some) * ways(groups.of - own, groups.chosen - some) /
           ways(groups.of, groups.chosen) * met(some * all / groups.of);
  }
  return parts * sum;
}

}  // namespace stepsim
