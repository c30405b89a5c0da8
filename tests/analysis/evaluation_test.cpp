// Passes over rows held back: what they cost a job, and whether they decide what fits.
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

Prediction predicted(std::vector<Setting> settings) {
  const std::string file = STEPSIM_SOURCE_DATA "/scenarios/measured/own/qwen3-0.6b-1x512.yaml";
  settings.emplace_back("job.packing", "false");
  settings.emplace_back("job.samples", "10000");
  settings.emplace_back("job.epochs", "2");
  return predict(load_scenario(source_data(), file, settings), Kept::figures);
}

}  // namespace

TEST_CASE("an evaluation is forward passes, and comes on top of the steps", "[evaluation]") {
  const Prediction without = predicted({});
  const Prediction with = predicted({{"job.evaluation.micro_batch", "1"},
                                     {"job.evaluation.every", "100"},
                                     {"job.evaluation.rows", "1000"}});
  CHECK(with.step_time == without.step_time);
  REQUIRE(with.evaluation);
  const EvaluationCost& cost = *with.evaluation;
  const double micro_batch = 1 / with.iterations_per_second;
  CHECK(cost.pass.value > 0.15 * micro_batch);
  CHECK(cost.pass.value < 0.6 * micro_batch);
  CHECK(cost.passes * with.length->effective_batch >= 1000);
  CHECK(cost.count == std::floor(with.length->optimizer_steps / 100));
  CHECK(with.wall.value == Approx((without.wall + cost.time() * cost.count).value));
}

TEST_CASE("GPUs draw in evaluations what they draw in steps", "[evaluation]") {
  const Prediction without = predicted({});
  const Prediction with = predicted({{"job.evaluation.micro_batch", "1"},
                                     {"job.evaluation.every", "100"},
                                     {"job.evaluation.rows", "1000"}});
  REQUIRE(without.energy);
  CHECK(with.job_energy.value / with.wall.value ==
        Approx(without.job_energy.value / without.wall.value).epsilon(1e-3));
}

TEST_CASE("stages are refused beside evaluations, which nothing writes for them", "[evaluation]") {
  CHECK_THROWS_WITH(load_scenario(source_data(), STEPSIM_SOURCE_DATA "/scenarios/template.yaml",
                                  std::vector<Setting>{{"strategy.pipeline_parallel.size", "2"},
                                                       {"job.evaluation.micro_batch", "1"}}),
                    Catch::Contains("is not modelled with job.evaluation"));
}

TEST_CASE("a share of the data and of an epoch are counted from the data", "[evaluation]") {
  const Prediction p = predicted({{"job.evaluation.micro_batch", "1"},
                                  {"job.evaluation.every", "0.25"},
                                  {"job.evaluation.rows", "0.1"}});
  CHECK(p.evaluation->count == 8);
  CHECK(p.evaluation->passes ==
        predicted({{"job.evaluation.micro_batch", "1"}, {"job.evaluation.rows", "1000"}})
            .evaluation->passes);
}

TEST_CASE("many rows at once in an evaluation decide what fits", "[evaluation]") {
  const Footprint without = predicted({}).memory;
  const Footprint few = predicted({{"job.evaluation.micro_batch", "1"}}).memory;
  const Footprint many = predicted({{"job.evaluation.micro_batch", "64"}}).memory;
  CHECK(few.device.peak.bytes == without.device.peak.bytes);
  CHECK(many.device.peak.phase == "evaluation");
  // 64 rows of 512 tokens have logits over 151,936 words, of two bytes at the least.
  CHECK(many.device.peak.bytes > without.states + 64.0 * 512 * 151936 * 2);
}

}  // namespace stepsim
