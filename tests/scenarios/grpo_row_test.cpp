// Rows of published GRPO steps: what becomes a scenario, and what cannot.
#include "scenarios/grpo_row.hpp"

#include <fstream>

#include "scenarios/scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace stepsim;

namespace {

// NeMo-RL 0.4, Llama-3.1-8B on two DGX H100.
GrpoRow row() {
  GrpoRow r;
  r.id = "nemorl-v0.4-1";
  r.source = "NVIDIA-NeMo/RL docs/about/performance-summary.md";
  r.policy_mode = "On policy";
  r.model = "llama-3.1-8b";
  r.node = "h100-8";
  r.nodes = 2;
  r.max_sequence = 4096;
  r.mean_sequence = 1060;
  r.generation_batch = 2048;
  r.train_batch = 512;
  r.samples = 32;
  r.step_seconds = 97.7;
  r.tokens_per_second_per_gpu = 1562;
  return r;
}

Scenario loaded(const GrpoRow& r) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/row.yaml";
  std::ofstream(file) << express(r).scenario;
  return load_scenario(STEPSIM_SOURCE_DATA, file);
}

}  // namespace

TEST_CASE("a step in turn becomes a colocated scenario with its figures", "[grpo]") {
  const Scenario scenario = loaded(row());
  REQUIRE(scenario.grpo);
  CHECK(scenario.grpo->layout == GrpoLayout::colocated);
  CHECK(scenario.grpo->responses() == 2048);
  CHECK(scenario.grpo->mini_batches == 4);
  CHECK(scenario.grpo->model_length() == 4096);
  CHECK(scenario.measured->of(Metric::step_time)->low == 97.7);
}

TEST_CASE("a step off the policy becomes separate learners and engines", "[grpo]") {
  GrpoRow r = row();
  r.policy_mode = "1-step Off";
  const Scenario scenario = loaded(r);
  CHECK(scenario.grpo->layout == GrpoLayout::separate);
  CHECK(scenario.grpo->learners == std::vector<std::uint32_t>{8, 0});
  CHECK(scenario.grpo->async_steps == 1);
}

TEST_CASE("a row that cannot be a scenario says why", "[grpo]") {
  GrpoRow r = row();
  r.train_expert = 8;
  r.mean_sequence = 0;
  const GrpoRowText text = express(r);
  CHECK(text.scenario.empty());
  CHECK(text.missing ==
        std::vector<std::string>{"the longest or the mean sequence",
                                 "learners with tensor, expert or pipeline parallelism"});
}
