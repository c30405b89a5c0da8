// This says what one replay tells a claim: figures by name, and what the step is bound by.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "analysis/studies/predict/prediction.hpp"

namespace stepsim {

// Returns the dimension of a metric: of a sweep's table, "share.CAUSE", "memory.CLASS" (device
// memory at the peak), "parameters" and "active_parameters"; nothing for a name that is none.
std::optional<Dimension> claim_dimension(std::string_view metric);
std::vector<std::string> claim_metric_names();

struct PointFacts {
  std::map<std::string, double> figures;  // by metric; times are there whether it fits or not
  std::string bound_by;  // "optimizer on the host thread": most of the critical path
  std::string largest;   // "most of it activations, 12.1 GB of 17 GB"

  std::optional<double> of(const std::string& metric) const;
  static auto fields(auto& self) { return std::tie(self.figures, self.bound_by, self.largest); }
};

PointFacts facts_of(const Scenario& scenario, Prediction prediction);
PointFacts facts_of(const Scenario& scenario, const GrpoPrediction& prediction);

}  // namespace stepsim
