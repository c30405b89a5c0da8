#include "analysis/studies/explain/carriers.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/studies/predict/draws.hpp"
#include "analysis/studies/predict/replayed_step.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/lists.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {
namespace {

constexpr double moved_by = 0.01;
constexpr double least_weight = 0.05;

struct PatternCost {
  double fixed = 0, per_byte = 0;
};

// Returns the pattern's cost as long as nobody else uses the links.
PatternCost cost_alone(const Platform& platform, const Pattern& pattern) {
  PatternCost cost;
  std::vector<double> load(platform.links.size(), 0);
  for (const Round& round : pattern.rounds) {
    double slowest = 0;
    for (const Flow& flow : round.flows) {
      slowest = std::max(slowest, flow.wire / flow.rate_cap);
      for (const LinkId id : flow.path) {
        const Link& link = platform.links[index(id)];
        slowest =
            std::max(slowest, load[index(id)] += flow.wire * link.weight / link.capacity.value);
      }
    }
    for (const Flow& flow : round.flows)
      for (const LinkId id : flow.path) load[index(id)] = 0;
    cost.fixed += round.latency.value;
    cost.per_byte += slowest;
  }
  return cost;
}

ByCause<double> costs_with(const Catalogue& data, const std::string& source,
                           const std::vector<Setting>& settings) {
  const Scenario scenario = load_scenario(data, source, settings);
  return summed_over_step(step_input(scenario), [](const StepProgram& program) {
    return costs_of(program.traffic.folded.platform, program.graph);
  });
}

Setting at_other_end(const NamedConstant& constant) {
  // Downwards, since a share may not rise above one.
  return setting_of(constant, constant.value * (1 - moved_by));
}

}  // namespace

ByCause<double> costs_of(const Platform& platform, const OpGraph& graph) {
  const OpSums sums = graph.sums();
  ByCause<double> costs = sums.seconds;
  for (std::size_t pattern = 0; pattern < sums.traffic.size(); ++pattern) {
    const PatternCost cost = cost_alone(platform, graph.patterns()[pattern]);
    for (std::size_t cause = 0; cause < cause_count; ++cause) {
      const OpSums::Traffic& traffic = sums.traffic[pattern][cause];
      costs[cause] += traffic.uses * cost.fixed + traffic.bytes * cost.per_byte;
    }
  }
  return costs;
}

ByCause<std::vector<Carrier>> carriers_of(const Catalogue& data, const std::string& source,
                                          const std::vector<Setting>& settings) {
  std::vector<NamedConstant> constants = load_scenario(data, source, settings).constants;
  std::erase_if(constants, [](const NamedConstant& c) {
    return !(c.low < c.high) || c.name == carries_everything || c.whole || !c.words.empty();
  });
  Tasks<ByCause<double>> tasks;
  tasks.emplace_back([&] { return costs_with(data, source, settings); });
  for (const NamedConstant& constant : constants)
    tasks.emplace_back([&] {
      std::vector<Setting> with = settings;
      with.push_back(at_other_end(constant));
      return costs_with(data, source, with);
    });
  const std::vector<ByCause<double>> answers = in_workers(tasks, usual_workers());
  const ByCause<double>& stated = answers.front();
  ByCause<std::vector<Carrier>> carriers;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const ByCause<double>& costs = answers[i + 1];
    for (std::size_t cause = 0; cause < cause_count; ++cause) {
      if (stated[cause] <= 0) continue;
      const double weight = (1 - costs[cause] / stated[cause]) / moved_by;
      if (std::abs(weight) >= least_weight) carriers[cause].push_back({constants[i], weight});
    }
  }
  for (std::vector<Carrier>& list : carriers)
    std::ranges::stable_sort(list, [](const Carrier& a, const Carrier& b) {
      return std::abs(a.weight) > std::abs(b.weight);
    });
  return carriers;
}

}  // namespace stepsim
