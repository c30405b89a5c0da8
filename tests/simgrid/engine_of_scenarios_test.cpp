// The engine finds for every scenario of the catalogue the step that SimGrid finds.
#include "scenarios/scenario.hpp"
#include "scenarios/scenario_catalog.hpp"
#include "sim/engine/own/replay.hpp"
#include "sim/engine/simgrid/simgrid_replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/worker.hpp"
#include "workloads/step/step.hpp"

namespace stepsim {

TEST_CASE("every step of the catalogue takes as long under SimGrid", "[simgrid][slow]") {
  std::size_t compared = 0;
  for (const std::string& name : scenario_names(STEPSIM_SOURCE_DATA)) {
    CAPTURE(name);
    const Scenario scenario = load_scenario(STEPSIM_SOURCE_DATA, name);
    if (scenario.grpo) continue;  // its learners' steps are like these
    const StepProgram program = build_step(step_input(scenario), Folding::automatic);
    const Platform& platform = program.traffic.folded.platform;
    const double own = replay(platform, program.graph).makespan.value;
    const auto other = numbers_from_worker([&] {
      return std::vector{simgrid_replay(platform, program.graph, Watched::makespan).makespan.value};
    });
    CHECK_THAT(own, WithinRel(other.front(), 1e-9));
    ++compared;
  }
  CHECK(compared > 40);
}

}  // namespace stepsim
