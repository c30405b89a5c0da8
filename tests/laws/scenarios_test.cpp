// What holds for every scenario file, with no test of its own.
#include <algorithm>
#include <cmath>

#include "analysis/studies/fidelity/validation.hpp"
#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "analysis/studies/predict/draws.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

using namespace stepsim;

namespace {

std::vector<NamedScenario> seeds() {
  std::vector<NamedScenario> list;
  for (const std::string& name : scenario_names(source_data()))
    if (name.starts_with("seeds/")) list.push_back({name, load_scenario(source_data(), name)});
  return list;
}

}  // namespace

TEST_CASE("every scenario file loads and has a title of its own", "[laws]") {
  const std::vector<std::string> names = scenario_names(source_data());
  CHECK(names.size() >= 30);
  std::vector<std::string> titles;
  for (const std::string& name : names) {
    CAPTURE(name);
    const Scenario scenario = load_scenario(source_data(), name);
    CHECK(std::find(titles.begin(), titles.end(), scenario.name) == titles.end());
    titles.push_back(scenario.name);
    if (name.starts_with("seeds/")) CHECK((scenario.measured || scenario.estimated));
  }
}

TEST_CASE("a constant that moves next to nothing at its further end is no mover", "[laws][slow]") {
  for (const std::string name :
       {"llama32-3b-sft-zero3", "llama33-70b-sft", "mpt7b-zero2", "ring-mini-sft-zero3"}) {
    const Scenario stated = load_scenario(source_data(), name);
    const double time = step_figures(stated, {}, Asked::times).step_time.value;
    std::vector<NamedConstant> constants;
    add_uncertain(constants, stated.constants);
    std::size_t little = 0;
    for (const NamedConstant& constant : constants) {
      CAPTURE(name, constant.name);
      const auto at = [&](double value) {
        const std::vector<Setting> settings{setting_of(constant, value)};
        const Scenario set = load_scenario(source_data(), name, settings);
        return step_figures(set, {}, Asked::times).step_time.value;
      };
      const Mover mover{constant, at(constant.low), at(constant.high)};
      const double further = is_high_further(constant) ? mover.at_high : mover.at_low;
      if (std::abs(further - time) > moves_little * time) continue;
      ++little;
      CHECK(strongest({mover}, time, 1).empty());
    }
    CHECK(2 * little > constants.size());  // most of them
  }
}

TEST_CASE("every figure that somebody measured or estimated has a prediction", "[laws][slow]") {
  const std::vector<NamedScenario> list = seeds();
  for (const Against against : {Against::measured, Against::estimated}) {
    const Validation validation = validate(list, against);
    CHECK(validation.figures.size() >= 15);
    for (const ValidatedFigure& figure : validation.figures) {
      CAPTURE(figure.id, spec_of(figure.metric).name);
      REQUIRE(figure.predicted);
      CHECK(std::isfinite(*figure.predicted));
      CHECK(*figure.predicted > 0);
    }
    std::size_t rows = 0;
    for (const FamilyErrors& family : validation.families) {
      CAPTURE(family.name);
      CHECK(family.median_abs_error <= family.p90_abs_error);
      rows += family.rows;
    }
    CHECK(rows == validation.figures.size());
  }
}

TEST_CASE("a GRPO job needs the same memory whether or not it is asked how long it takes",
          "[laws][slow]") {
  std::size_t jobs = 0;
  for (const std::string& name : scenario_names(source_data())) {
    const Scenario scenario = load_scenario(source_data(), name);
    if (!scenario.grpo) continue;
    CAPTURE(name);
    ++jobs;
    const GrpoMemory memory = grpo_memory(scenario);
    const GrpoPrediction run = predict_grpo(scenario);
    CHECK(run.memory.learner.most() == memory.learner.most());
    CHECK(run.memory.engine.most() == memory.engine.most());
    CHECK(run.memory.host.most() == memory.host.most());
    CHECK(run.memory.failure == memory.failure);
    if (!run.ran) CHECK(memory.failure);
  }
  CHECK(jobs >= 20);
}

TEST_CASE("runs that ran out of memory are predicted to", "[laws][slow]") {
  for (const ValidatedVerdict& verdict : validate(seeds(), Against::measured).verdicts) {
    CAPTURE(verdict.id);
    if (!verdict.fits) CHECK(verdict.right());
  }
}

TEST_CASE("what sources do not say of both Qwen3-30B runs explains their wall times",
          "[laws][slow]") {
  std::vector<NamedScenario> runs;
  for (const std::string name : {"qwen3-30b-dpo-zero3", "qwen3-30b-sft-zero3"})
    runs.push_back({name, load_scenario(source_data(), name), name});
  const Validation validation =
      validate(runs, Against::measured, {.data = source_data(), .samples = 16});
  std::size_t walls = 0;
  for (const ValidatedFigure& figure : validation.figures) {
    CAPTURE(figure.id, spec_of(figure.metric).name);
    REQUIRE(figure.interval);
    CHECK(figure.interval->low <= *figure.predicted);
    CHECK(*figure.predicted <= figure.interval->high);
    if (figure.metric != Metric::wall) continue;
    CHECK(figure.held());
    ++walls;
  }
  CHECK(walls == 2);
}
