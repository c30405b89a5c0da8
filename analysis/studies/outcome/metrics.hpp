// A metric is a figure that a scenario comes to, with a name: the word of a sweep's column, of a
// search and of a claim.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "analysis/studies/predict/prediction.hpp"

namespace stepsim {

struct NamedMetric {
  std::string name;  // "step_time"
  Dimension dimension{};
  std::string meaning;
};

// Returns every metric there is, in the order of a table's columns.
std::span<const NamedMetric> all_metrics();
// Returns the place of a metric among them.
std::optional<std::size_t> find_metric(std::string_view name);
// Returns "step_time_s", "peak_memory_bytes": the name with the unit that machines find behind it.
std::string column_name(const NamedMetric& metric);

struct Outcome {
  bool feasible = false;
  std::string reason;           // what stands in the way, in words; one line
  std::string bottleneck;       // the cause with the largest exposed time; empty: it cannot run
  std::vector<double> figures;  // [all_metrics()]; not a number: unknown

  std::optional<double> of(std::string_view metric) const;
  static auto fields(auto& self) {
    return std::tie(self.feasible, self.reason, self.bottleneck, self.figures);
  }
};

Outcome outcome_of(const Scenario& scenario, const Prediction& prediction);
Outcome outcome_of(const Scenario& scenario, const GrpoPrediction& prediction);
// A scenario that breaks a rule is an outcome, too.
Outcome impossible(std::string_view why);

// Predicts the scenario with these settings. Settings that make no sense together are impossible().
// Something that is no scenario at all, such as an unknown key, stays a UserError.
Outcome evaluate(const Catalogue& data, const std::string& scenario,
                 std::span<const Setting> settings, const MaybeDraw& draw = {});

// Throws UserError when such settings can mean nothing; what merely cannot be passes. The files
// that were read outside the catalogue.
std::vector<std::string> require_meaning(const Catalogue& data, const std::string& scenario,
                                         std::span<const Setting> settings);

// Writes one line without its end, for journals; it reads back to the same bits.
std::string to_line(const Outcome& outcome);
// Returns nullopt if the line is truncated or not written by to_line().
std::optional<Outcome> outcome_from(std::string_view line);

}  // namespace stepsim
