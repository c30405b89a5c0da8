// A posterior is how much each draw of the constants counts after a run was measured.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scenarios/keys/observation.hpp"
#include "sim/base/draw.hpp"

namespace stepsim {

// One logarithm for each draw: predicted over measured, less the stated constants' own where a
// figure is centred.
using Ratios = std::vector<double>;

// What is known of the errors of a prediction, as standard deviations of logarithms. The two of the
// model come from `stepsim-rows ... --anchored`: with less, intervals of other runs of
// one source hold too few of them, with more they are no narrower than without an anchor.
struct AnchorErrors {
  double shared = 0.06;    // of the model, in all runs of one site and framework alike
  double single = 0.06;    // of the model, in each run its own
  double measured = 0.01;  // of the measurement
  double memory = 0.08;    // of the model's memory, in each run its own
  double kernels = 0.10;   // of kernels of one kind, in each run their own: a guess

  // Returns the part of the mean gap of so many runs which all runs are taken to share.
  double carried(double runs) const;
  // Returns the standard deviation of another run's gap about that part.
  double another_run(double runs) const;
  // Returns the same of a run that is measured, too.
  double measured_run(double runs) const;
};

// Returns Student's density of three degrees of freedom, but for its constant; distances are in
// standard deviations.
double long_tailed(double distance);

// Returns weights that add up to one. Tails are long (Student's distribution of three degrees), so
// that a run outside of all draws leaves more than the nearest of them. Each figure that was
// measured has a distance for each draw, a logarithm over its standard deviation; none: it was not.
std::vector<double> weights_of(std::span<const Ratios> figures);
// Returns how many draws of one weight say as much.
double effective_draws(std::span<const double> weights);

// Returns the logarithms moved so that their mean is `stated`: a stated constant was fitted or
// measured, and lies beside the middle of its range.
Ratios centred(Ratios ratios, double stated);

// Returns the draws before anything was measured: each once, with constants of a site drawn widely.
std::shared_ptr<const WeightedDraws> draws_before(std::uint32_t count, std::uint64_t seed);

// Returns where so much of the weight lies below; `values` and `weights` are in the same order.
double weighted_quantile(std::span<const double> values, std::span<const double> weights,
                         double share);

}  // namespace stepsim
