// The table of docs/memory.md: what published notes say about memory, and what is computed.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/studies/predict/footprint.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

using namespace stepsim;

namespace {

constexpr double giga = 1e9;

Scenario scenario_of(const std::string& name, std::vector<Setting> settings = {}) {
  return load_scenario(source_data(), name, settings);
}

// Bytes of a tensor class that a rank's device keeps between steps.
double kept(const Scenario& scenario, Held held_class) {
  const StepInput input{scenario.cluster, scenario.model, scenario.stack, scenario.strategy,
                        scenario.job};
  double sum = 0;
  for (const Holding& holding : resident_of(rank_part(input)).holdings)
    if (holding.pool == Pool::device && holding.held == held_class) sum += holding.bytes;
  return sum;
}

double at_peak(const Scenario& scenario, const std::string& tensor_class) {
  for (const auto& [name, bytes] : footprint(scenario).device.peak.classes)
    if (name == tensor_class) return bytes;
  return 0;
}

// To three digits, as the table has it.
bool reads(double bytes, double figure) {
  return std::abs(bytes / giga - figure) <= 0.006 * figure;
}

}  // namespace

TEST_CASE("memory rules of the MPT-7B notes", "[analysis]") {
  const std::string run = "mpt7b-zero2";
  const Scenario two = scenario_of(run);
  CHECK(reads(kept(two, Held::parameters), 13.3));
  CHECK(reads(at_peak(two, "own_gradients"), 6.65));
  CHECK(reads(kept(two, Held::optimizer) + kept(two, Held::master_weights), 39.9));
  // All layers' activations, since nothing is recomputed; attention by a flash kernel.
  const auto activations = [&](const std::string& sequence) {
    return footprint(scenario_of(run, {{"job.sequence", sequence},
                                       {"strategy.checkpointing", "none"},
                                       {"strategy.attention", "flash"}}))
        .device.highest_of("activations");
  };
  CHECK(std::abs(activations("512") / activations("256") - 2) < 1e-9);
  // Of all that it could have been, the fp32 gradient of a half is what fails, at either length.
  const auto failing = [&](const std::string& sequence) {
    const auto failed =
        footprint(scenario_of("mpt7b-zero2-oom", {{"job.sequence", sequence}})).device.failed;
    return failed ? fmt::format("{} {:.2f}", failed->tensor_class, failed->bytes / 0x1p30) : "";
  };
  CHECK(failing("512") == "fp32_gradient 12.38");
  CHECK(failing("256") == failing("512"));
  CHECK(footprint(two).fit() != Fit::oom);  // with expandable segments
  const auto needed = [&](const std::string& stage, const std::string& accumulation) {
    return footprint(scenario_of(run, {{"strategy.zero", stage},
                                       {"job.gradient_accumulation", accumulation}}))
        .needed();
  };
  for (const char* stage : {"2", "3"}) CHECK(needed(stage, "16") == needed(stage, "4"));
}

TEST_CASE("memory rules of the Qwen3-30B notes on 8 GPUs", "[analysis]") {
  const std::string run = "qwen3-30b-sft-zero3";
  const Scenario two = scenario_of(run, {{"strategy.zero", "2"}});
  const Scenario three = scenario_of(run);
  CHECK(reads(kept(two, Held::parameters), 61.1));
  CHECK(reads(kept(three, Held::parameters), 7.63));
  CHECK(reads(kept(three, Held::gradients), 7.63));
  // Whole gradients come and go: no more than a bucket's and one unit's beside the shard.
  CHECK(footprint(two).device.highest_of("gradients") / giga < 60.0 / 6);
  for (const char* stage : {"2", "3"}) {
    const Scenario fp32 =
        scenario_of(run, {{"strategy.zero", stage}, {"strategy.optimizer", "adamw"}});
    CHECK(reads(kept(fp32, Held::optimizer), 30.5));
    CHECK(reads(kept(fp32, Held::master_weights), 15.3));
  }
  CHECK(reads(kept(two, Held::optimizer), 7.75));
}

TEST_CASE("memory rules of the Qwen3-30B notes on 2 GPUs", "[analysis]") {
  const Scenario apart = scenario_of("openrlhf-qwen3-30b-2x96-zero2-ep2");
  const Footprint needs = footprint(apart);
  CHECK(reads(needs.states - kept(apart, Held::parameters) - kept(apart, Held::master_weights) -
                  kept(apart, Held::optimizer),
              30.5));
  CHECK(reads(kept(apart, Held::optimizer), 16.2));
  CHECK(reads(
      kept(scenario_of("openrlhf-qwen3-30b-2x96-zero2-oom", {{"strategy.optimizer", "adamw_4bit"}}),
           Held::optimizer),
      16.2));
  const Scenario three = scenario_of("openrlhf-qwen3-30b-2x96-zero3-init-oom");
  CHECK(reads(footprint(three).needed(), 164));
  CHECK(reads(kept(three, Held::master_weights), 61.1));
  CHECK(reads(kept(three, Held::gradients), 30.5));
}

TEST_CASE("memory rules of the GLM-4.5-Air notes and of a 7B learner", "[analysis]") {
  const Scenario glm = scenario_of("glm45-air-sft");
  CHECK(reads(kept(glm, Held::master_weights), 53.4));
  CHECK(reads(footprint(glm).device.highest_of("checkpoints"), 98.8));
  const Scenario more = scenario_of("glm45-air-sft", {{"job.gradient_accumulation", "4"}});
  CHECK(footprint(more).needed() == footprint(glm).needed());
  CHECK(reads(footprint(scenario_of("grpo-7b-learner")).states, 58.4));
}
