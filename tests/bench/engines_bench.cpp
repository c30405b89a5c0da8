// This measures what a replay by SimGrid costs beside one by the own engine, for every step of the
// catalogue and for exchanges between many GPUs, and fits the two constants of
// sim/engine/player.cpp that foretell it: seconds for each thing that the engine handles, and for
// each flow that is under way when another one ends.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/studies/predict/bandwidth.hpp"
#include "analysis/studies/predict/replayed_step.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/engine/player.hpp"
#include "tests/support/processor_time.hpp"
#include "tests/support/source_data.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

struct Cost {
  double activities = 0, encounters = 0, own = 0, simgrid = 0;  // s
};

Cost cost_of(const std::function<Trace(const Player&)>& play) {
  Trace trace;
  const auto seconds = [&](EngineChoice engine) {
    return processor_seconds_of([&] { trace = play(Player(engine)); });
  };
  Cost cost;
  cost.own = seconds(EngineChoice::own);
  cost.activities = static_cast<double>(trace.activities);
  cost.encounters = static_cast<double>(trace.encounters);
  cost.simgrid = seconds(EngineChoice::simgrid) - cost.own;  // which plays beside it
  return cost;
}

Cost cost_of_step(const StepProgram& program) {
  return cost_of([&](const Player& player) {
    return player.play(program.traffic.folded.platform, program.graph, Watched::times);
  });
}

// Every rank sends to every other: no programs have more flows under way at once.
Cost cost_of_exchange(std::uint32_t nodes) {
  const Cluster cluster = load_cluster(source_data(), {.name = "h100-8", .nodes = nodes});
  BandwidthQuestion question{.operation = "all_to_all"};
  question.sizes = {256e6};
  question.folding = Folding::off;
  return cost_of([&](const Player& player) {
    question.player = player;
    return measure_bandwidth(cluster, question).run.trace;
  });
}

// Fits by least squares of relative errors: simgrid = a activities + b encounters + c.
std::array<double, 3> fitted(const std::vector<Cost>& costs) {
  std::array<std::array<double, 4>, 3> sums{};
  for (const Cost& cost : costs) {
    const std::array<double, 3> x{cost.activities / cost.simgrid, cost.encounters / cost.simgrid,
                                  1 / cost.simgrid};
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t column = 0; column < 3; ++column) sums[row][column] += x[row] * x[column];
      sums[row][3] += x[row];
    }
  }
  for (std::size_t pivot = 0; pivot < 3; ++pivot)
    for (std::size_t row = 0; row < 3; ++row) {
      if (row == pivot) continue;
      const double factor = sums[row][pivot] / sums[pivot][pivot];
      for (std::size_t column = pivot; column < 4; ++column)
        sums[row][column] -= factor * sums[pivot][column];
    }
  return {sums[0][3] / sums[0][0], sums[1][3] / sums[1][1], sums[2][3] / sums[2][2]};
}

void print_all() {
  std::vector<Cost> costs;
  const auto add = [&](const std::string& name, const Cost& cost) {
    costs.push_back(cost);
    fmt::print("{:<48}{:>11.0f}{:>12.0f}{:>9.3f}{:>9.3f}\n", name, cost.activities, cost.encounters,
               cost.own, cost.simgrid);
  };
  fmt::print("{:<48}{:>11}{:>12}{:>9}{:>9}\n", "step", "activities", "encounters", "own s",
             "SimGrid s");
  for (const std::string& name : scenario_names(source_data())) {
    const Scenario scenario = load_scenario(source_data(), name);
    if (scenario.grpo) continue;
    add(name, cost_of_step(build_step(step_input(scenario), Folding::automatic)));
  }
  for (const std::uint32_t nodes : {1, 2, 4, 8, 16})
    add(fmt::format("all_to_all between {} GPUs", 8 * nodes), cost_of_exchange(nodes));
  const auto [activity, encounter, start] = fitted(costs);
  std::vector<double> errors;
  for (const Cost& cost : costs)
    errors.push_back(
        (activity * cost.activities + encounter * cost.encounters + start) / cost.simgrid - 1);
  std::ranges::sort(errors, {}, [](double error) { return std::abs(error); });
  fmt::print(
      "{:.2e} s an activity, {:.2e} s an encounter, {:.3f} s to start; median error {:.0f} %, "
      "nine of ten within {:.0f} %\n",
      activity, encounter, start, 100 * std::abs(errors[errors.size() / 2]),
      100 * std::abs(errors[errors.size() * 9 / 10]));
}

}  // namespace
}  // namespace stepsim

int main() {
  stepsim::print_all();
}
