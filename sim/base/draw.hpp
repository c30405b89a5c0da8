// Draws of constants from their ranges: the same name gets the same draw in every file and
// scenario, so two scenarios are compared under the same luck.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/constant.hpp"

namespace stepsim {

// These are draws that were held against a measured run, and how much each counts since.
struct WeightedDraws {
  struct One {
    std::uint32_t sample = 0;
    double weight = 1;
    double factor = 1;  // of the time: the part of the measured run that no constant explains
  };
  std::uint64_t seed = 1;
  std::uint32_t of = 1;
  std::vector<One> draws;  // the fastest of the measured run first; weights add up to one
  // What was measured says nothing of the constants of another entry than this: {"gpu", "h200"}.
  std::vector<std::pair<std::string, std::string>> entries{};
  // Constants of a site, which no table can know, are drawn from further than their range: the
  // standard deviation of their logarithm.
  std::vector<std::pair<std::string, double>> of_site{};
  std::vector<std::pair<std::string, double>> places{};  // where in their ranges constants are now
  double factor = 1;                                     // of the time, with constants there
  double another_run = 0;  // standard deviation of the factor's logarithm from run to run
  // A factor's logarithm is `centre`, less the `shared` part of the mean gap in so many runs.
  double runs = 0, shared = 0, centre = 0;

  // Returns whether `name` is the entry that the scope's constants are of.
  bool speaks_of(std::string_view scope, std::string_view name) const;
};

// A draw is one of `of` samples of a Latin hypercube: over all samples every constant visits every
// slice of its range once, in an order of its own.
struct Draw {
  std::uint64_t seed = 1;
  std::uint32_t sample = 0, of = 1;
  // One of these is taken instead, each as often as it counts.
  std::shared_ptr<const WeightedDraws> after{};
  bool centre = false;  // the middle of `after`, and no draw
};

// Returns where in its range the constant is drawn, between 0 and 1.
double quantile(const Draw& draw, std::string_view name);

// The stated value is the median; below it the range is uniform down to low, above it up to high.
// Words are equally likely.
double value_at(const NamedConstant& constant, double quantile);
// Returns the constant's value in this draw, by its full name.
double value_in(const Draw& draw, const NamedConstant& constant, std::string_view name);
// Returns what the time of a step is multiplied by, because a measured run was so.
double time_factor(const Draw& draw);

// Returns the standard normal quantile to within 0.005, by Tukey's lambda distribution.
double normal_quantile(double share);

// Returns a quantile of a sorted list, between two entries in proportion; 0 for an empty list.
double quantile(std::span<const double> sorted, double share);

// One number from another so that any bit of it moves half of the bits (SplitMix64, Steele and
// others 2014).
constexpr std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace stepsim
