#include "analysis/studies/predict/stages.hpp"

#include <algorithm>

namespace stepsim {

Footprint fullest_footprint(const Scenario& scenario, const StepProgram& program,
                            const std::function<Timeline(Rank)>& step) {
  if (program.stages.empty()) return footprint_of(scenario, program.resident, step(0));
  Scenario own = scenario;
  Footprint fullest;
  double first = 0;
  for (std::size_t i = 0; i < program.stages.size(); ++i) {
    const StepStage& stage = program.stages[i];
    own.model = stage.model;
    Footprint of_stage = footprint_of(own, stage.resident, step(stage.lane));
    of_stage.stage = {i, program.stages.size()};
    if (i == 0) first = of_stage.device.peak.bytes;
    if (i == 0 || of_stage.margin.value < fullest.margin.value) fullest = std::move(of_stage);
  }
  fullest.first_stage = first;
  return fullest;
}

Breakdown mean_breakdown(const std::vector<StepStage>& stages, const OpGraph& graph,
                         const Trace& trace) {
  if (stages.empty()) return break_down(graph, trace, busiest_rank(graph, trace));
  const double share = 1 / static_cast<double>(stages.size());
  ByCause<BreakdownRow> rows{};
  Breakdown mean;
  for (const StepStage& stage : stages) {
    const Breakdown own = break_down(graph, trace, stage.lane);
    mean.idle += own.idle * share;
    for (const BreakdownRow& row : own.rows) {
      BreakdownRow& sum = rows[index(row.cause)];
      sum.cause = row.cause;
      sum.exposed += row.exposed * share;
      sum.hidden += row.hidden * share;
    }
  }
  for (const BreakdownRow& row : rows)
    if (row.exposed.value + row.hidden.value > 0) mean.rows.push_back(row);
  std::ranges::stable_sort(mean.rows,
                           [](const auto& a, const auto& b) { return a.exposed > b.exposed; });
  return mean;
}

}  // namespace stepsim
