// These tests run steps on a machine that changes meanwhile.
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

constexpr const char* base = "llama32-3b-sft-zero3";

Scenario with(const std::string& events, std::vector<Setting> settings = {}) {
  settings.emplace_back("cluster.events", events);
  return load_scenario(source_data(), base, settings);
}

double seconds(const Scenario& scenario, const Replaying& how = {}) {
  return replay_step(step_input(scenario), how).trace.makespan.value;
}

double usual() {
  return seconds(load_scenario(source_data(), base, {}));
}

}  // namespace

TEST_CASE("events are the same for both engines, folded and not", "[laws]") {
  const std::vector<Setting> two_nodes{{"cluster.nodes", "2"}};
  for (const Scenario& scenario :
       {with("[{gpu: 3, at: 0.1 s, for: 0.3 s, share: 0.5}]"),
        with("[{link: xgmi.gpu0>gpu1, at: 0.1 s, share: 0.3, for: 0.02 s, period: 0.1 s}]"),
        with("[{link: xgmi.gpu0>gpu1, latency: 1 ms}]"),
        with("[{from: 0, to: 1, bytes: 200 MB, period: 20 ms}]", two_nodes),
        with("[{gpu: 9, at: 0.2 s, lost: true}]", two_nodes)}) {
    CAPTURE(scenario.text);
    const double own = seconds(scenario);
    CHECK_THAT(seconds(scenario, {.folding = Folding::off}), WithinRel(own, 1e-9));
    CHECK_THAT(seconds(scenario, {.player = Player(EngineChoice::simgrid)}), WithinRel(own, 1e-9));
  }
}

TEST_CASE("an event before nothing or after everything changes nothing", "[laws]") {
  CHECK_THAT(seconds(with("[{gpu: 3, at: 1 h, share: 0.5}]")), WithinRel(usual(), 1e-12));
  CHECK_THAT(seconds(with("[{gpu: 3, share: 1}]")), WithinRel(usual(), 1e-12));
}

TEST_CASE("a GPU that is slow for half of a step costs less than one that is slow for all of it",
          "[laws]") {
  const double whole = seconds(with("[{gpu: 3, share: 0.5}]"));
  const double half =
      seconds(with("[{gpu: 3, share: 0.5, for: " + std::to_string(usual() / 2) + " s}]"));
  const std::vector<Setting> slow{{"cluster.slow_gpus", "[{rank: 3, speed: 0.5}]"}};
  CHECK_THAT(whole, WithinRel(seconds(load_scenario(source_data(), base, slow)), 1e-9));
  CHECK(usual() < half);
  CHECK(half < whole);
}

TEST_CASE("a step in which a GPU is lost ends there, and says how far the job is set back",
          "[laws]") {
  const Prediction p = predict(
      with("[{gpu: 3, at: 0.1 s, lost: true}]", {{"job.save.every", "100"}}), Kept::figures);
  CHECK_THAT(p.step_time.value, exactly(0.1));
  REQUIRE(p.loss);
  CHECK(p.loss->what == "GPU 3");
  CHECK(p.loss->steps_again == 50);
  CHECK_THAT(p.loss->step.value, WithinRel(usual(), 1e-9));
  CHECK(p.loss->resume.value > 0);
}

TEST_CASE("events that make no sense are refused by key", "[laws]") {
  const auto refusal = [](const std::string& events) -> std::string {
    try {
      with(events);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  using Catch::Contains;
  CHECK_THAT(refusal("[{gpu: 8, share: 0.5}]"),
             Contains("cluster.events[0].gpu: ") && Contains("0 to 7"));
  CHECK_THAT(refusal("[{link: xgmi.gpu0>gpu9, share: 0.5}]"),
             Contains("no link \"xgmi.gpu0>gpu9\" (did you mean \"xgmi.gpu0>gpu"));
  CHECK_THAT(refusal("[{gpu: 1, at: 1 s}]"),
             Contains("changes nothing: expected share, latency or lost"));
  CHECK_THAT(refusal("[{share: 0.5}]"), Contains("expected one of link, gpu, or from and to"));
  CHECK_THAT(refusal("[{gpu: 1, share: 0.5, for: 2 s, period: 1 s}]"),
             Contains("must be longer than `for`"));
  CHECK_THAT(refusal("[{gpu: 1, lost: true, share: 0.5}]"),
             Contains("means nothing of what is lost"));
  CHECK_THAT(refusal("[{from: 0, to: 0, bytes: 1 GB}]"), Contains("must be another node"));
  CHECK_THAT(refusal("[{gpu: 1, shar: 0.5}]"),
             Contains("shar: unknown key (did you mean \"share\"?"));
}

}  // namespace stepsim
