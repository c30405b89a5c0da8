// Both engines find the same times, and SimGrid's plugins the same energy, of whatever the
// catalogue can be asked.
#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "analysis/studies/predict/bandwidth.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/machines.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

// Starts and ends of operations, and bytes and busy times of links, are compared, not the
// makespan alone.
const Player both(EngineChoice::both);

}  // namespace

TEST_CASE("every step of the catalogue has the same trace and energy under SimGrid",
          "[simgrid][slow]") {
  std::size_t steps = 0, jobs = 0;
  for (const std::string& name : scenario_names(source_data())) {
    CAPTURE(name);
    const Scenario scenario = load_scenario(source_data(), name);
    if (scenario.grpo) {  // steps of its learners, and the weight sync
      const GrpoPrediction p = predict_grpo(scenario, {.player = both});
      if (!p.ran) continue;
      CHECK(p.played_by.simgrid > 0);
      ++jobs;
    } else {
      const PlayedBy by = predict(scenario, Kept::run, {.player = both, .metered = true}).played_by;
      CHECK((by.simgrid == 1 && by.own == 0));
      CHECK(by.energy_difference.has_value() == power_of(scenario.cluster).has_value());
      ++steps;
    }
  }
  CHECK(steps > 70);
  CHECK(jobs > 20);
}

TEST_CASE("every collective has the same trace under SimGrid on every machine", "[simgrid][slow]") {
  std::size_t played = 0;
  for (const MachineSize& size : node_machines({1, 2}, 16))
    for (const std::string& operation : bandwidth_operations()) {
      CAPTURE(size.name, size.nodes, operation);
      try {
        const BandwidthAnswer answer = measure_bandwidth(
            load(size), {.operation = operation, .sizes = {65536, 1e6, 256e6}, .player = both});
        CHECK(answer.run.trace.by.simgrid == 1);
        ++played;
      } catch (const UserError&) {  // no cable leads there
      }
    }
  CHECK(played > 200);
}

}  // namespace stepsim
