// A job costs money and energy; this says how much.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/sweep/sweep.hpp"
#include "cli/options.hpp"
#include "sim/base/record.hpp"
#include "sim/base/units.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

inline constexpr OptionSpec price_option{"price", "N",
                                         "adds what the whole job costs, or a step: money for a "
                                         "GPU and an hour, or who rents it: lambda, "
                                         "aws:spot, cheapest, as `stepsim list prices` names them"};
inline constexpr OptionSpec budget_option{
    "budget-money", "N", "with --price: adds what so much money buys: hours, steps, tokens"};
inline constexpr OptionSpec power_option{"power", "N",
                                         "watts of a GPU with its share of the node: the energy of "
                                         "the whole job by these, instead of by "
                                         "what its parts draw"};

struct Rates {
  std::optional<double> price;  // for a GPU and an hour
  std::optional<double> power;  // W of a GPU with what belongs to it
  std::string offer{};          // whose price it is, of which kind and day; "": the user's own
  std::optional<double> budget{};
};
Rates rates_of(const Options& options, const Catalogue& data, const Cluster& cluster);
// Of a sweep, whose points may have other GPUs than `base`: throws UserError where none of them can
// have such a price.
SweepPrice sweep_price_of(const Options& options, const Catalogue& data, const Cluster& base,
                          bool other_gpus);

struct JobTime {
  Seconds step, wall;  // wall: 0 where no length of the job is said
  double gpus = 0;
  double tokens_per_second = 0;  // of all GPUs
  std::optional<double> kwh{};   // as predicted, of the job, or else of a step
  double steps = 0;              // that `wall` is for; 0: not known

  // Returns a step with its part of what lies between steps.
  Seconds step_with_all() const { return steps > 0 && wall.value > 0 ? wall * (1 / steps) : step; }
};

// Writes "cost         269 GPU-hours: 672 at 2.5 each; 188 kWh"; "" without rates.
std::string cost_text(const Rates& rates, const JobTime& job);
Record cost_record(const Rates& rates, const JobTime& job);

}  // namespace stepsim
