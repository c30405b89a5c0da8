#include "scenarios/keys/observation.hpp"

#include <algorithm>

#include "scenarios/keys/key_tables.hpp"

namespace stepsim {

double error_against(const Range& range, double value) {
  if (value < range.low) return value / range.low - 1;
  if (value > range.high) return value / range.high - 1;
  return 0;
}

Observation read_observation(const Table& table) {
  Observation observation;
  read_blocks(table, observation_blocks(), observation);
  const bool figures = std::ranges::any_of(observation.figures,
                                           [](const auto& figure) { return figure.has_value(); });
  if (!figures && !observation.fits)
    table.problem("source", "belongs to no figure: what was observed?");
  return observation;
}

}  // namespace stepsim
