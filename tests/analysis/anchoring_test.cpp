// What a measured run says of constants, and what is wrong with it.
#include "analysis/studies/anchor/anchoring.hpp"

#include <cmath>
#include <map>

#include "analysis/studies/anchor/diagnosis.hpp"
#include "analysis/studies/anchor/posterior.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

std::string own_run(const std::string& name) {
  return STEPSIM_SOURCE_DATA "/scenarios/measured/own/" + name + ".yaml";
}

double step_of(const std::string& file, std::vector<Setting> settings = {},
               const MaybeDraw& draw = {}) {
  return in_worker([&] {
    return step_figures(load_scenario(source_data(), file, settings, draw), {}, Asked::times)
        .step_time.value;
  });
}

TrainerLog log_of(double seconds) {
  TrainerLog log{.kind = "a log", .done = 200};
  log.seconds_per_step = seconds;
  return log;
}

AnchoredRun anchored_on(const std::string& file, double seconds,
                        std::shared_ptr<const Anchor> before = {}) {
  const std::vector<TrainerLog> logs{log_of(seconds)};
  return anchor_run({.data = source_data(),
                     .scenario = file,
                     .settings = {},
                     .logs = logs,
                     .names = {"log"},
                     .title = "a run",
                     .before = std::move(before)});
}

}  // namespace

TEST_CASE("weights are of the draws that a run is near", "[anchor]") {
  const std::vector<double> weights = weights_of(std::vector<Ratios>{{0, 1, 8}, {}});
  CHECK(weights[0] + weights[1] + weights[2] == Approx(1));
  CHECK(weights[0] > weights[1]);
  CHECK(weights[1] > 10 * weights[2]);
  CHECK(effective_draws(std::vector<double>{0.25, 0.25, 0.25, 0.25}) == Approx(4));
  CHECK(weighted_quantile(std::vector<double>{3, 1, 2}, std::vector<double>{0.1, 0.8, 0.1}, 0.5) ==
        1);
}

TEST_CASE("more runs carry more of a gap, and leave less for the next", "[anchor]") {
  const AnchorErrors errors;
  CHECK(errors.carried(0) == 0);
  CHECK(errors.carried(4) > errors.carried(1));
  CHECK(errors.another_run(4) < errors.another_run(1));
  CHECK(errors.another_run(1) < errors.another_run(0));
  CHECK(errors.measured_run(1) > errors.another_run(1));
}

TEST_CASE("a profile tells slow products from a slow host", "[anchor]") {
  const std::string file = own_run("qwen3-0.6b-8x2048-checkpoints");
  const KernelTimes times =
      in_worker([&] { return kernel_times(step_input(load_scenario(source_data(), file, {}))); });
  const auto moved = [&](double factor) {
    TrainerLog log = log_of(step_of(file));
    log.profile = KernelProfile{.kind = "a profile",
                                .steps = 1,
                                .step_time = log.seconds_per_step,
                                .idle = {},
                                .kernels = {{"gemm", factor * times.products},
                                            {"flash", times.attention},
                                            {"elementwise", times.other}}};
    const AnchoredRun run = anchor_run({.data = source_data(),
                                        .scenario = file,
                                        .settings = {},
                                        .logs = std::span(&log, 1),
                                        .names = {"profile"},
                                        .title = "a run"});
    double place = 0.5;
    for (const MovedConstant& each : run.anchor.moved)
      if (each.name.starts_with("gpu.gemm")) place = std::min(place, each.place);
    return place;
  };
  CHECK(moved(1.3) < moved(1));
}

TEST_CASE("a run with a slow host makes another one's prediction better", "[anchor]") {
  const std::string file = own_run("qwen3-0.6b-1x512"), other = own_run("qwen3-1.7b-1x512");
  const std::vector<Setting> slow{{"node.host.core_speed", "0.6"}};
  const double seen = step_of(file, slow), truth = step_of(other, slow);
  const AnchoredRun run = anchored_on(file, seen);
  CHECK(std::abs(std::log(run.anchored.value / seen)) <
        0.6 * std::abs(std::log(run.stated.value / seen)));
  CHECK(run.after.high - run.after.low < run.before.high - run.before.low);
  CHECK(holds(run.anchor.moved, "node.host.core_speed", &MovedConstant::name));
  CHECK_THAT(run.anchor.said, Catch::Contains("slower than the catalogue"));
  const TemporaryFolder folder;
  put_bytes(folder.file("a.anchor.yaml"), anchor_text(run.anchor));
  const double anchored = step_of(other, {{"anchor.file", folder.file("a.anchor.yaml")}});
  CHECK(std::abs(std::log(anchored / truth)) < 0.6 * std::abs(std::log(step_of(other) / truth)));
}

TEST_CASE("runs of one site add up, and of another machine do not", "[anchor]") {
  const std::string file = own_run("qwen3-0.6b-1x512");
  const double seen = 1.3 * step_of(file);
  const AnchoredRun one = anchored_on(file, seen);
  const AnchoredRun two = anchored_on(file, seen, std::make_shared<Anchor>(one.anchor));
  CHECK(two.anchor.draws->runs == 2);
  CHECK(two.anchor.from.size() == 2);
  CHECK(std::abs(two.anchored.value - seen) < std::abs(one.anchored.value - seen));
  CHECK(two.anchor.draws->another_run < one.anchor.draws->another_run);
  CHECK_THROWS_WITH(
      anchored_on(own_run("qwen3-8b-1x4096-zero3"), seen, std::make_shared<Anchor>(one.anchor)),
      Catch::Contains("--anchor: is of "));
}

TEST_CASE("a run outside of all draws is followed all the same", "[anchor]") {
  const std::string file = own_run("qwen3-1.7b-4x2048");
  const double stated = step_of(file);
  const AnchoredRun run = anchored_on(file, 2 * stated);
  CHECK(run.anchored.value > 1.3 * stated);
  CHECK(run.anchor.effective >= 1);
}

}  // namespace stepsim
