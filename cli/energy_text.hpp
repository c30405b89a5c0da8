// These write what `run` says of energy.
#pragma once

#include <optional>
#include <string>

#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "sim/base/record.hpp"

namespace stepsim {

inline constexpr double joules_per_kwh = 3.6e6;
// Writes "45.2 kWh" or "12.3 MWh".
std::string kwh_text(Joules energy);

// Writes in a line the energy of a step, by what draws it, and of the whole job; "" where it is not
// known.
std::string energy_text(const Prediction& prediction, const std::optional<Interval>& interval);
// Writes the energy by cause and by what draws it.
std::string energy_table(const Prediction& prediction);
Record energy_record(const Prediction& prediction, const std::optional<Interval>& interval);

}  // namespace stepsim
