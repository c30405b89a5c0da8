// Learners that ask engines for a part of a step at a time, against closed forms.
#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/grpo_bench.hpp"
#include "workloads/grpo/lengths.hpp"
#include "workloads/grpo/placement.hpp"

using namespace stepsim;

namespace {

constexpr std::size_t warm = 3, last = 12;

// 16 prompts of one response, dealt to four learners, two at a time.
GrpoBench in_parts() {
  GrpoBench bench = grpo_bench();
  Grpo& grpo = bench.grpo;
  grpo.async_steps = 0;
  grpo.inflight_updates = false;
  grpo.samples = 1;
  grpo.rollout_at_once = 2;
  grpo.measured_steps = 12;
  bench.sync = {};
  bench.training_seconds = 10;
  return bench;
}

// A prompt's pass and a step for each further token.
double call_of(const GrpoBench& bench, double rows) {
  const Grpo& g = bench.grpo;
  const DecodeModel decode = bench.decode();
  const auto prompt = static_cast<double>(g.prompt_tokens);
  const double first = decode.step(
      {.prompt = rows * prompt, .pairs = rows * decode.pairs_of(prompt), .sampled = rows});
  const auto more = static_cast<std::int64_t>(g.lengths.mean) - 1;
  return first + decode.steps(rows, rows * (prompt + 1), more, 0);
}

Scorer scorer(std::size_t servers, double seconds) {
  return {servers, [seconds](double) { return Seconds{seconds}; }};
}

}  // namespace

TEST_CASE("calls of learners that share an engine follow each other", "[grpo]") {
  GrpoBench bench = in_parts();
  for (const std::size_t engines : {4u, 2u, 1u}) {
    CAPTURE(engines);
    bench.engines = engines;
    const double calls = 8.0 / static_cast<double>(engines);
    CHECK(mean_step(bench.run(), warm, last) ==
          Approx(calls * call_of(bench, 2) + 10).epsilon(1e-9));
  }
}

TEST_CASE("a slow engine takes as much longer, and its learner with it", "[grpo]") {
  GrpoBench bench = in_parts();
  const double call = call_of(bench, 2);
  bench.speeds = {1, 1, 0.5, 1};
  CHECK(mean_step(bench.run(), warm, last) == Approx(2 * 2 * call + 10).epsilon(1e-9));
}

TEST_CASE("a learner has its rows scored before it asks for more", "[grpo]") {
  GrpoBench bench = in_parts();
  const double call = call_of(bench, 2);
  // Own passes follow each other; those elsewhere run beside them.
  bench.scorers = {scorer(0, 1), scorer(0, 2), scorer(4, 2.5)};
  CHECK(mean_step(bench.run(), warm, last) == Approx(2 * (call + 3) + 10).epsilon(1e-9));
  // One GPU that four learners share takes their rows one after the other, and so their next calls
  // end one after the other, too.
  bench.scorers = {scorer(0, 1), scorer(1, 2.5)};
  CHECK(mean_step(bench.run(), warm, last) == Approx(2 * call + 5 * 2.5 + 10).epsilon(1e-9));
}

TEST_CASE("an engine answers one learner while another's rows are scored", "[grpo]") {
  GrpoBench bench = in_parts();
  bench.engines = 1;
  const double call = call_of(bench, 2);
  bench.scorers = {scorer(0, call / 2)};
  CHECK(mean_step(bench.run(), warm, last) == Approx(8 * call + call / 2 + 10).epsilon(1e-9));
}

TEST_CASE("a critic with GPUs of its own counts as far as it ends later", "[grpo]") {
  GrpoBench bench = in_parts();
  const double before = mean_step(bench.run(), warm, last);
  bench.sync = {.gather = {0.5}, .send = {1.5}, .busy = {}, .window = {}, .pause = {}};
  bench.beside = [](std::span<const double>) { return Seconds{11}; };
  CHECK(mean_step(bench.run(), warm, last) == Approx(before + 2));
  bench.beside = [](std::span<const double>) { return Seconds{30}; };
  const GrpoRun run = bench.run();
  CHECK(mean_step(run, warm, last) == Approx(before + 20));
  CHECK(run.steps[warm].beside == Approx(18));
}

TEST_CASE("padded rows of a whole batch end with the longest", "[grpo]") {
  GrpoBench bench = in_parts();
  bench.whole_batches = true;
  bench.grpo.lengths = {
      .kind = LengthKind::lognormal, .mean = 900, .sigma = 0.9, .list = {}, .seed = 7};
  const GrpoRun padded = bench.run();
  bench.whole_batches = false;
  const GrpoRun own = bench.run();
  // The longest of two ends when it would have, a little later for the row beside it.
  CHECK(padded.end >= own.end);
  CHECK(padded.end <= 1.05 * own.end);
  CHECK(padded.generated == own.generated);
  std::int64_t counted = 0, without = 0;
  for (const Engine& engine : padded.engines) counted += engine.totals().tokens;
  for (const Engine& engine : own.engines) without += engine.totals().tokens;
  CHECK(counted == without);
}

TEST_CASE("learners that generate themselves wait for each other behind every call", "[grpo]") {
  GrpoBench bench = in_parts();
  bench.grpo.rollout_at_once = 0;
  bench.grpo.prompts = 6;  // of four rows: six rows of each learner, and so parts of groups
  bench.grpo.samples = 4;
  bench.whole_batches = true;
  CHECK(mean_step(bench.run(), warm, last) == Approx(call_of(bench, 6) + 10).epsilon(1e-9));
  bench.grpo.generate_calls = 3;
  CHECK(mean_step(bench.run(), warm, last) == Approx(3 * call_of(bench, 2) + 10).epsilon(1e-9));
  bench.speeds = {1, 1, 0.5, 1};
  CHECK(mean_step(bench.run(), warm, last) == Approx(6 * call_of(bench, 2) + 10).epsilon(1e-9));
  bench.speeds = {};
  bench.grpo.lengths = {
      .kind = LengthKind::lognormal, .mean = 900, .sigma = 0.9, .list = {}, .seed = 3};
  const GrpoRun apart = bench.run();
  CHECK(apart.generated == Approx(apart.trained + apart.left_over + apart.waiting));
  // Layers that all gather together go on until the last row of all is done.
  bench.in_step = true;
  const GrpoRun together = bench.run();
  CHECK(together.generated == apart.generated);
  CHECK(together.engines[1].totals().busy > apart.engines[1].totals().busy);
  CHECK(together.engines[1].totals().busy == Approx(together.engines[2].totals().busy));
}

TEST_CASE("tokens are kept from prompt to gradient where a part is generated at a time", "[grpo]") {
  GrpoBench bench = in_parts();
  bench.grpo.lengths = {
      .kind = LengthKind::lognormal, .mean = 900, .sigma = 0.9, .list = {}, .seed = 3};
  const GrpoRun run = bench.run();
  CHECK(run.generated == Approx(run.trained + run.left_over + run.filtered + run.stale +
                                run.given_up + run.waiting));
}

TEST_CASE("models with GPUs of their own have the last ones", "[grpo]") {
  const GrpoBench bench = in_parts();
  Cluster cluster = bench.cluster;
  cluster.nodes = 4;
  Grpo grpo;
  grpo.own = {.critic = 4, .reference = 2, .reward = 1};
  grpo.learners = first_gpus(cluster, 4);
  const Placement placement = place(cluster, grpo);
  CHECK(placement.learners == Group{0, 1, 2, 3});
  CHECK(placement.critic == Group{9, 10, 11, 12});
  CHECK(placement.reference == Group{13, 14});
  CHECK(placement.reward == Group{15});
  CHECK(placement.engines.size() == 5);  // 4 to 8
  CHECK(cluster_of(cluster, placement.critic).ranks() == 4);
  CHECK(cluster_of(cluster, placement.critic).nodes == 2);
  cluster.speeds.assign(16, 1);
  cluster.speeds[10] = 0.5;
  CHECK(cluster_of(cluster, placement.critic).speeds == std::vector<double>{1, 0.5, 1, 1});
  grpo.layout = GrpoLayout::colocated;
  CHECK(place(cluster, grpo).learners.size() == 9);
  CHECK(learner_cluster(cluster, grpo).ranks() == 9);
}
