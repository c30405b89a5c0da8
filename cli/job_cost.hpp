// A job costs money and energy; this says how much.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/predict/goodput.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "analysis/studies/sweep/sweep.hpp"
#include "cli/options.hpp"
#include "sim/base/record.hpp"
#include "sim/base/units.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

struct Rates {
  std::optional<double> price;  // for a GPU and an hour
  std::optional<double> power;  // W of a GPU with what belongs to it
  std::string offer{};          // whose price it is, of which kind and day; "": the user's own
  std::optional<double> budget{};
};
Rates rates_of(const Options& options, const Catalogue& data, const Cluster& cluster);
// Returns the price of a sweep's points, which may have other GPUs than `base`. Throws UserError
// where none of them can have such a price.
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

// These write what `run` says of energy.
inline constexpr double joules_per_kwh = 3.6e6;
// Writes "45.2 kWh" or "12.3 MWh".
std::string kwh_text(Joules energy);

// Writes in a line the energy of a step, by what draws it, and of the whole job; "" where it is not
// known.
std::string energy_text(const Prediction& prediction, const std::optional<Interval>& interval);
// Writes the energy by cause and by what draws it.
std::string energy_table(const Prediction& prediction);
Record energy_record(const Prediction& prediction, const std::optional<Interval>& interval);

// Writes a sentence: "94.1 % of the time of a job whose parts fail: ...".
std::string goodput_text(const Goodput& goodput);
// Writes the same in a few words.
std::string goodput_in_short(const Goodput& goodput);
Records goodput_records(const std::optional<Goodput>& goodput);

}  // namespace stepsim
