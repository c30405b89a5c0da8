#include "workloads/strategy/row_lengths.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

double share_below(double deviations) {
  return std::erfc(-deviations / std::numbers::sqrt2) / 2;
}

// Integrals over nine standard deviations to either side. What they sum is smooth.
constexpr double most_deviations = 9;
constexpr int steps = 720;

// The mean and the spread of what is the largest of `count`, each value(deviations) of a normal
// distribution; values must grow with it.
struct Largest {
  double mean = 0, deviation = 0;
};
template <class Value>
Largest largest_of(double count, Value value) {
  double mean = 0, square = 0, below = 0;
  for (int i = 1; i <= steps; ++i) {
    const double upper = most_deviations * (2.0 * i / steps - 1);
    const double all_below = std::pow(share_below(upper), count);
    const double middle = value(upper - most_deviations / steps);
    mean += (all_below - below) * middle;
    square += (all_below - below) * middle * middle;
    below = all_below;
  }
  return {mean / below, std::sqrt(std::max(0.0, square / below - mean * mean / below / below))};
}

// Returns how many standard deviations from the middle that share of a normal distribution ends.
double deviations_below(double share) {
  double low = -most_deviations, high = most_deviations;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (share_below(middle) < share ? low : high) = middle;
  }
  return low;
}

// Returns the mean of so many rows, as far from the middle: their sum leans to the right as each of
// them does.
double mean_of_rows(const Largest& one, double rows, double deviations) {
  const double spread = one.deviation / one.mean;
  const double variance = std::log1p(spread * spread / rows);
  return one.mean * std::exp(std::sqrt(variance) * deviations - variance / 2);
}

// The digits of a number in base 2 behind the point, the last first: neighbours lie far apart.
double mirrored(std::size_t number) {
  double value = 0;
  for (double digit = 0.5; number > 0; number /= 2, digit /= 2)
    value += digit * static_cast<double>(number % 2);
  return value;
}

// Returns whether ranks wait for each other in each micro-batch, and not just once a step.
bool waits_in_each_micro_batch(const Job& job, const Strategy& strategy, const Mesh& mesh) {
  return job.accumulation == 1 || strategy.sharding >= Sharding::zero2 || mesh.stages > 1 ||
         mesh.experts > 1;
}

// Tokens of a row that is so many standard deviations from the middle, as rows are cut.
auto row_at(const Job& job) {
  const double variance = std::log1p(job.documents.spread * job.documents.spread);
  const double mean =
      job.documents.mean > 0 ? job.documents.mean : job.fill * static_cast<double>(job.sequence);
  return [middle = std::log(mean) - variance / 2, deviation = std::sqrt(variance),
          most = static_cast<double>(job.sequence)](double deviations) {
    return std::min(most, std::exp(middle + deviation * deviations));
  };
}

// Slots of a row on the rank that has the most of them.
double usual_slots(const Job& job, const Strategy& strategy, const Mesh& mesh) {
  const auto row = row_at(job);
  const auto rows = static_cast<double>(job.rows());
  const double ranks = mesh.data();
  const bool waits = waits_in_each_micro_batch(job, strategy, mesh);
  const bool padded = job.padding == Padding::longest;
  if (padded && waits) return largest_of(rows * ranks, row).mean;
  // Sums over rows or micro-batches are nearly normal.
  const Largest one = largest_of(padded ? rows : 1, row);
  const double summed = (padded ? 1 : rows) * (waits ? 1 : static_cast<double>(job.accumulation));
  const double more = largest_of(ranks, [](double deviations) { return deviations; }).mean;
  return one.mean + more * one.deviation / std::sqrt(summed);
}

}  // namespace

double kept_tokens(const Job& job) {
  if (job.documents.spread <= 0) return job.documents.mean;
  return largest_of(1, row_at(job)).mean;
}

Job usual_rows(const Job& job, const Strategy& strategy, const Cluster& cluster) {
  const bool is_usual = job.documents.most > 0;
  if (job.padding == Padding::row || is_usual) return job;
  Job usual = job;
  const double slots = usual_slots(job, strategy, mesh_of(strategy, cluster));
  usual.sequence =
      std::min(job.sequence, whole_rows(strategy, std::max<std::int64_t>(1, std::llround(slots))));
  usual.documents.most = static_cast<double>(job.sequence);
  const double tokens = job.fill * static_cast<double>(job.sequence);
  usual.fill = std::min(1.0, tokens / static_cast<double>(usual.sequence));
  return usual;
}

std::vector<double> shares_of_slots(const Job& job, std::size_t count) {
  const bool known = job.documents.mean > 0 || job.fill < 1;
  if (job.packed || job.padding == Padding::row || !known) return {};
  const auto row = row_at(job);
  const auto rows = static_cast<double>(job.rows());
  const Largest one = largest_of(1, row);
  std::vector<double> shares;
  for (std::size_t i = 0; i < count; ++i) {
    const double below = mirrored(i) + 0.5 / static_cast<double>(count);
    const double slots = job.padding == Padding::longest
                             ? row(deviations_below(std::pow(below, 1 / rows)))
                             : mean_of_rows(one, rows, deviations_below(below));
    shares.push_back(std::clamp(slots / static_cast<double>(job.sequence), 0.0, 1.0));
  }
  return shares;
}

Job full_rows(const Job& job) {
  Job full = job;
  full.padding = Padding::row;
  return full;
}

}  // namespace stepsim
