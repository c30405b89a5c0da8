// Figures of steps whose ranks are stages of a pipeline.
#include "analysis/studies/predict/footprint.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/worker.hpp"

using namespace stepsim;

namespace {

Scenario with_layers(const std::string& layers) {
  return load_scenario(source_data(), "llama33-70b-pipeline",
                       std::vector<Setting>{{"strategy.pipeline_parallel.schedule", "1f1b"},
                                            {"strategy.pipeline_parallel.virtual_stages", "1"},
                                            {"strategy.pipeline_parallel.layers", layers},
                                            {"strategy.checkpointing", "full"}});
}

}  // namespace

TEST_CASE("the memory of a pipeline is that of its fullest stage", "[analysis]") {
  const Footprint first = footprint(with_layers("[50, 10, 10, 10]"));
  const Footprint third = footprint(with_layers("[10, 10, 50, 10]"));
  CHECK(first.stage.number == 0);
  CHECK(third.stage.number == 2);
  CHECK(third.stage.count == 4);
  // The first also has the embedding, and holds more micro-batches.
  CHECK(first.needed() > third.needed());
  CHECK(footprint(with_layers("[20, 20, 20, 20]")).needed() < third.needed());
}

TEST_CASE("rows of the mean of all stages add up to the step, in time and in program order alike",
          "[analysis]") {
  const Scenario scenario = with_layers("[20, 20, 20, 20]");
  const std::vector<double> numbers = numbers_from_worker([&] {
    const Prediction p = predict(scenario, Kept::run);
    double sum = p.breakdown.idle.value;
    for (const BreakdownRow& row : p.breakdown.rows) sum += row.exposed.value;
    return std::vector<double>{sum / p.step_time.value, p.memory.device.peak.bytes};
  });
  CHECK_THAT(numbers[0], exactly(1));
  CHECK_THAT(footprint(scenario).device.peak.bytes, WithinRel(numbers[1], 0.02));
}

TEST_CASE("weights' gradients fill what stages of a model would wait, in the memory of 1F1B",
          "[analysis]") {
  const auto with = [](const std::string& schedule, const std::string& pieces) {
    return load_scenario(
        source_data(), "llama31-8b-zero-bubble",
        std::vector<Setting>{{"strategy.pipeline_parallel.schedule", schedule},
                             {"strategy.pipeline_parallel.virtual_stages", pieces},
                             {"strategy.pipeline_parallel.layers",
                              pieces == "1" ? "[8, 9, 9, 6]" : "[4, 4, 4, 4, 4, 4, 4, 4]"}});
  };
  const auto time_of = [&](const Scenario& scenario) {
    return numbers_from_worker([&] {
             const Prediction p = predict(scenario, Kept::run);
             return std::vector<double>{p.step_time.value};
           })
        .front();
  };
  const Scenario plain = with("1f1b", "1"), split = with("zb_h1", "1");
  CHECK(time_of(split) < 0.92 * time_of(plain));
  const double held = footprint(plain).needed();
  CHECK(footprint(plain).stage.number == 0);
  CHECK(footprint(split).stage.number == 0);
  // What waits for its weights' gradients has a result of its own for a while.
  CHECK_THAT(footprint(split).needed(), WithinRel(held, 0.015));
  // Eight passes of half the layers, as under ZB-H1 with two pieces; then six, then four.
  const auto activations = [&](const std::string& schedule) {
    return footprint(with(schedule, "2")).device.highest_of("activations");
  };
  const double folded = activations("zbv");
  CHECK_THAT(activations("zb_h1"), WithinRel(folded, 0.1));
  CHECK_THAT(activations("v_half"), WithinRel(0.75 * folded, 0.05));
  CHECK_THAT(activations("v_min"), WithinRel(0.5 * folded, 0.06));
}
