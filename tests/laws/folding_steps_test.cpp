// These tests fold the steps that stacks write, on every node of the catalogue.
#include "analysis/studies/predict/replayed_step.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

constexpr std::array shardings{"0", "1", "2", "3", "fsdp", "hsdp"};
constexpr std::array models{"llama-3.2-3b", "qwen3-30b-a3b"};

// Returns settings with rows so short that collectives come close together and kernels run beside
// them.
std::vector<Setting> settings_of(const std::string& node, const std::string& stack,
                                 std::size_t number) {
  return {{"cluster", "{node: " + node + "}"},
          {"stack", stack},
          {"model", models[number / shardings.size() % models.size()]},
          {"strategy", std::string("{zero: ") + shardings[number % shardings.size()] + "}"},
          {"job.sequence", number % 2 == 0 ? "128" : "2048"}};
}

double seconds(const Scenario& scenario, Folding folding) {
  return replay_step(step_input(scenario), {.folding = folding}).trace.makespan.value;
}

// Returns false where such a step is refused.
bool check_same(const std::vector<Setting>& settings) {
  try {
    Scenario scenario = load_scenario(source_data(), "llama32-3b-sft-zero3", settings);
    scenario.model.layers = 3;  // more of them are alike, and take longer
    CHECK_THAT(seconds(scenario, Folding::automatic),
               WithinRel(seconds(scenario, Folding::off), 1e-9));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

void check_pairs(std::size_t every) {
  std::size_t number = 0, asked = 0, ran = 0;
  for (const std::string& node : names_on(source_data(), node_shelf))
    for (const std::string& stack : names_on(source_data(), stack_shelf)) {
      if (++number % every != 0) continue;
      CAPTURE(node, stack, number);
      ++asked;
      ran += check_same(settings_of(node, stack, number)) ? 1 : 0;
    }
  CHECK(3 * ran > asked);
}

}  // namespace

TEST_CASE("steps take as long with every GPU replayed, on some nodes with some stacks", "[laws]") {
  check_pairs(37);
}

TEST_CASE("steps take as long with every GPU replayed, on every node with every stack",
          "[laws][slow]") {
  check_pairs(1);
}

}  // namespace stepsim
