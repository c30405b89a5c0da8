#include "workloads/grpo/lengths.hpp"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

// Each (seed, purpose, group, sample) has a stream of its own: what one draw is does not depend on
// how many were drawn before.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Returns a number between 0 and 1, neither of them.
double uniform(std::uint64_t seed, std::uint64_t purpose, std::uint64_t group,
               std::uint64_t sample) {
  const std::uint64_t bits = mixed(mixed(mixed(mixed(seed) + purpose) + group) + sample);
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

constexpr std::uint64_t length_draw = 1, angle_draw = 2, signal_draw = 3;

double normal(std::uint64_t seed, std::uint64_t group, std::uint64_t sample) {
  constexpr double turn = 6.283185307179586;
  return std::sqrt(-2 * std::log(uniform(seed, length_draw, group, sample))) *
         std::cos(turn * uniform(seed, angle_draw, group, sample));
}

double below(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

}  // namespace

std::int64_t response_tokens(const Grpo& grpo, std::uint64_t group, std::uint64_t sample) {
  const ResponseLengths& l = grpo.lengths;
  double tokens = l.mean;
  if (l.kind == LengthKind::lognormal)
    tokens = l.mean * std::exp(l.sigma * normal(l.seed, group, sample) - l.sigma * l.sigma / 2);
  if (l.kind == LengthKind::empirical) {
    const double place =
        uniform(l.seed, length_draw, group, sample) * static_cast<double>(l.list.size());
    tokens = static_cast<double>(l.list[static_cast<std::size_t>(place)]);
  }
  return std::clamp<std::int64_t>(std::llround(tokens), 1, grpo.response_limit);
}

bool without_signal(const Grpo& grpo, std::uint64_t group) {
  return uniform(grpo.lengths.seed, signal_draw, group, 0) < grpo.zero_std_fraction;
}

double mean_response(const Grpo& grpo) {
  const ResponseLengths& l = grpo.lengths;
  const double limit = static_cast<double>(grpo.response_limit);
  if (l.kind == LengthKind::empirical) {
    double sum = 0;
    for (const std::int64_t tokens : l.list) sum += std::min(static_cast<double>(tokens), limit);
    return sum / static_cast<double>(l.list.size());
  }
  if (l.kind == LengthKind::fixed || l.sigma <= 0) return std::min(l.mean, limit);
  // This is E[min(X, c)] of a lognormal X.
  const double d = (std::log(limit / l.mean) + l.sigma * l.sigma / 2) / l.sigma;
  return l.mean * below(d - l.sigma) + limit * below(-d);
}

ResponseLengths lengths_with_mean(double mean, double sigma, std::int64_t limit,
                                  std::uint64_t seed) {
  Grpo grpo;
  grpo.response_limit = limit;
  grpo.lengths = {
      .kind = LengthKind::lognormal, .mean = mean, .sigma = sigma, .list = {}, .seed = seed};
  constexpr int halvings = 60;
  double low = mean, high = 1e3 * mean;
  for (int i = 0; i < halvings; ++i) {
    grpo.lengths.mean = (low + high) / 2;
    (mean_response(grpo) < mean ? low : high) = grpo.lengths.mean;
  }
  return grpo.lengths;
}

}  // namespace stepsim
