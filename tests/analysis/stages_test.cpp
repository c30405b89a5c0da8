// Figures of steps whose ranks are stages of a pipeline.
#include "analysis/studies/predict/stages.hpp"

#include "analysis/studies/predict/prediction.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/worker.hpp"

using namespace stepsim;

namespace {

Scenario with_layers(const std::string& layers) {
  return load_scenario(STEPSIM_SOURCE_DATA, "llama33-70b-pipeline",
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
    const Prediction p = predict(scenario, Folding::automatic);
    double sum = p.breakdown.idle.value;
    for (const BreakdownRow& row : p.breakdown.rows) sum += row.exposed.value;
    return std::vector<double>{sum / p.step_time.value, p.memory.device.peak.bytes};
  });
  CHECK_THAT(numbers[0], exactly(1));
  CHECK_THAT(footprint(scenario).device.peak.bytes, WithinRel(numbers[1], 0.02));
}
