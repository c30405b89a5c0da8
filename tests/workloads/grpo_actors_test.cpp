// GRPO's actors against closed forms, conservation and bounds.
#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/grpo_bench.hpp"
#include "workloads/grpo/lengths.hpp"

using namespace stepsim;

namespace {

constexpr std::size_t warm = 5;

// With everything of one length: each engine keeps its share of what is in flight, and every
// response takes as many iterations as it has tokens.
double generation_bound(const GrpoBench& bench, std::int64_t steps_of_prompts) {
  const Grpo& g = bench.grpo;
  const double flying = static_cast<double>(steps_of_prompts) * g.responses();
  const double each = flying / static_cast<double>(bench.engines);
  const double length = g.lengths.mean;
  const double context = static_cast<double>(g.prompt_tokens) + length / 2;
  const double rate =
      static_cast<double>(bench.engines) * each / bench.decode().iteration(each, each * context);
  return g.responses() * length / rate;
}

GrpoBench long_tailed() {
  GrpoBench bench = grpo_bench();
  bench.grpo.lengths = {
      .kind = LengthKind::lognormal, .mean = 900, .sigma = 0.9, .list = {}, .seed = 7};
  return bench;
}

}  // namespace

TEST_CASE("with slow learners a step is training and sync", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.training_seconds = 300;
  const GrpoRun run = bench.run();
  const double last = run.steps.back().start;
  CHECK(last > 0);
  CHECK(mean_step(run, warm, 40) == Approx(300 + 2).epsilon(0.03));
}

TEST_CASE("with slow engines a step is as long as they generate for one", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.training_seconds = 0.01;
  bench.sync = {};
  for (const std::int64_t ahead : {1, 2, 4}) {
    CAPTURE(ahead);
    bench.grpo.async_steps = ahead;
    bench.grpo.drop_stale = true;  // a prompt for every result
    if (ahead < 4) {               // with more some are too old by a moment
      const double bound = generation_bound(bench, ahead);
      CHECK(mean_step(bench.run(), 8, 40) == Approx(bound).epsilon(0.03));
    }
    bench.grpo.drop_stale = false;  // those of a step together
    const double step = mean_step(bench.run(), 8, 40);
    CHECK(step <= 1.03 * generation_bound(bench, ahead));
    CHECK(step >= 0.97 * generation_bound(bench, ahead + 1));
  }
}

TEST_CASE("in turn, a step is generation, reward, training and sync", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.grpo.async_steps = 0;
  bench.grpo.reward_latency = {3};
  const GrpoRun run = bench.run();
  CHECK(mean_step(run, warm, 40) == Approx(generation_bound(bench, 1) + 3 + 10 + 2).epsilon(0.03));
  for (const StepRecord& step : run.steps) CHECK(step.most_stale == 0);
}

// Two rounds of (generation, rewards, training, sync) are one cycle of two batches, which meet only
// at the sync.
TEST_CASE("ahead, verifiers work beside learners", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.grpo.async_steps = 1;
  bench.grpo.inflight_updates = false;
  bench.grpo.verifiers = 1;
  const double training = 10, sync = 2, generation = generation_bound(bench, 1);
  for (const double each : {0.1, 0.5, 3.0}) {
    CAPTURE(each);
    bench.grpo.verify_time = {each};
    const double rewards = each * bench.grpo.responses();
    const double bound = std::max({sync + std::max(training, generation), rewards,
                                   (sync + generation + rewards + training) / 2});
    const GrpoRun run = bench.run();
    CHECK(mean_step(run, 8, 40) == Approx(bound).epsilon(0.03));
    const StepRecord& before = run.steps[20];
    const StepRecord& s = run.steps[21];
    CHECK(s.rewards <= rewards);
    CHECK(s.end - before.end == Approx(s.wait + s.rewards + s.train + s.sync()));
  }
}

TEST_CASE("engines that begin anew behind each sync lose what was under way", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.grpo.inflight_updates = false;
  bench.grpo.async_steps = 2;
  bench.training_seconds = 3 * generation_bound(bench, 2);  // all is there before the next sync
  CHECK(mean_step(bench.run(), 8, 40) == Approx(bench.training_seconds + 2).epsilon(0.01));
  bench.grpo.sync_aborts = true;
  CHECK(mean_step(bench.run(), 8, 40) == Approx(bench.training_seconds + 2).epsilon(0.01));
  // A long answer is never done when syncs come sooner.
  bench = long_tailed();
  bench.training_seconds = 1;
  bench.grpo.inflight_updates = true;
  const double kept = mean_step(bench.run(), 8, 40);
  bench.grpo.inflight_updates = false;
  bench.grpo.sync_aborts = true;
  const GrpoRun run = bench.run();
  double anew = 0;
  for (const Engine& engine : run.engines) anew += engine.totals().made_anew;
  CHECK(anew > 0);
  CHECK(mean_step(run, 8, 40) > kept);
}

// While an engine is down for a share of the time, the others have its work.
TEST_CASE("engines that fail alone leave their share of the time to others", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.training_seconds = 0.01;
  bench.sync = {};
  bench.engines = 4;
  bench.grpo.measured_steps = 400;
  bench.grpo.async_steps = 4;
  bench.grpo.drop_stale = false;
  const double all = mean_step(bench.run(), 8, 400);
  bench.failures = {.mtbf = 20 * all, .notice = 0, .start = 5 * all, .seed = 1};
  const GrpoRun run = bench.run();
  const double with = mean_step(run, 8, 400);
  CHECK(run.engine_failures > 30);
  // A fifth of the time they are down, and what they had under way is made once more.
  CHECK(with > 1.01 * all);
  CHECK(with < 1.45 * all);
  CHECK(run.generated ==
        Approx(run.trained + run.left_over + run.filtered + run.stale + run.waiting).epsilon(1e-9));
  bench.failures.notice = 5 * all;  // work waits for whoever notices
  CHECK(mean_step(bench.run(), 8, 400) > with);
  bench.failures.mtbf = 1e12;
  CHECK(mean_step(bench.run(), 8, 400) == all);
}

TEST_CASE("syncs that must not follow each other so soon are left out", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.training_seconds = 100;
  bench.grpo.async_steps = 4;
  bench.grpo.inflight_updates = true;
  const double always = mean_step(bench.run(), 8, 40);
  CHECK(always == Approx(102).epsilon(0.01));
  bench.grpo.sync_interval = {150};  // behind every second step
  const GrpoRun run = bench.run();
  CHECK(mean_step(run, 8, 40) == Approx(101).epsilon(0.01));
  std::size_t without = 0;
  for (const StepRecord& step : run.steps) without += step.send == 0 ? 1 : 0;
  CHECK(without == run.steps.size() / 2);
  // As old as they are when two steps of weights come together.
  CHECK(run.steps.back().most_stale >= bench.run().steps.front().most_stale);
  // Asked for in the middle of a step, it waits for the rest of it.
  for (const StepRecord& step : run.steps)
    if (step.send > 0 && step.queued > 0) CHECK(step.queued == Approx(50).epsilon(0.05));
  const auto queued = [](const GrpoRun& of) {
    double sum = 0;
    for (const StepRecord& step : of.steps) sum += step.queued;
    return sum;
  };
  CHECK(queued(run) > 0);
  bench.grpo.sync_interval = {};
  CHECK(queued(bench.run()) == 0);
  bench.grpo.sync_interval = {150};
  bench.training_seconds = 0.01;  // learners wait, and the sync comes when it may
  CHECK(mean_step(bench.run(), 8, 40) > 0);
}

TEST_CASE("verifiers that begin when all responses are there add their rounds to a step",
          "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.grpo.async_steps = 0;
  const double before = mean_step(bench.run(), warm, 40);
  bench.grpo.verify_time = {0.5};
  bench.grpo.verifiers = 3;
  const double rounds = std::ceil(bench.grpo.responses() / 3);
  const GrpoRun run = bench.run();
  CHECK(mean_step(run, warm, 40) == Approx(before + 0.5 * rounds).epsilon(1e-6));
  CHECK(run.steps.back().rewards == Approx(0.5 * rounds));
}

TEST_CASE("the queue's bound throttles engines when learners are slow", "[grpo]") {
  GrpoBench bench = long_tailed();
  bench.training_seconds = 500;
  const GrpoRun run = bench.run();
  const double flying = static_cast<double>((bench.grpo.async_steps + 1) * bench.grpo.prompts);
  CHECK(static_cast<double>(run.most_prompts) == flying);
  CHECK(static_cast<double>(run.most_results) <= flying);
  // Per step not more is generated than trained on, although engines could do many times that.
  const double steps = static_cast<double>(run.steps.size());
  const double ahead = static_cast<double>(2 * bench.grpo.async_steps + 1);
  const double per_step = run.generated / (steps + ahead);
  CHECK(per_step <= run.trained / steps * 1.1);
  double busy = 0;
  for (const Engine& engine : run.engines) busy += engine.totals().busy;
  CHECK(busy < 0.3 * run.end * static_cast<double>(bench.engines));
}

TEST_CASE("no response that is trained on is older than the bound", "[grpo]") {
  for (const SyncProtocol protocol : {SyncProtocol::v1, SyncProtocol::v2, SyncProtocol::v3})
    for (const bool in_flight : {true, false})
      for (const std::int64_t ahead : {0, 1, 2, 4, 8})
        for (const double training : {1.0, 200.0}) {
          GrpoBench bench = long_tailed();
          bench.grpo.protocol = protocol;
          bench.grpo.inflight_updates = in_flight;
          bench.grpo.async_steps = ahead;
          bench.grpo.drop_stale = true;
          bench.grpo.measured_steps = 20;
          bench.training_seconds = training;
          REQUIRE(bench.grpo.staleness_bound() == ahead);
          for (const StepRecord& step : bench.run().steps) {
            CHECK(step.most_stale <= static_cast<double>(ahead));
            CHECK(step.staleness <= step.most_stale);
            CHECK(step.staleness >= 0);
          }
        }
}

// Prompts of a step are asked for when learners begin one, behind those of async_steps.
TEST_CASE("what is never dropped and never overtaken is async_steps old", "[grpo]") {
  for (const std::int64_t ahead : {1, 2, 4}) {
    GrpoBench bench = grpo_bench();
    bench.grpo.async_steps = ahead;
    bench.training_seconds = 300;
    CHECK_FALSE(bench.grpo.staleness_bound());
    const GrpoRun run = bench.run();
    for (const StepRecord& step : run.steps) CHECK(step.most_stale <= static_cast<double>(ahead));
    CHECK(run.steps.back().staleness == static_cast<double>(ahead));
  }
}

TEST_CASE("tokens generated are packed, dropped or still waiting", "[grpo]") {
  GrpoBench bench = long_tailed();
  bench.grpo.drop_stale = true;
  bench.grpo.zero_std_fraction = 0.3;
  bench.learners = 7;  // leaves a remainder
  for (const bool sampling : {false, true}) {
    bench.grpo.active_sampling = sampling;
    const GrpoRun run = bench.run();
    CHECK(
        run.generated ==
        Approx(run.trained + run.left_over + run.filtered + run.stale + run.waiting).epsilon(1e-9));
    CHECK(run.filtered_groups > 0);
    for (const StepRecord& step : run.steps)
      if (sampling) CHECK(step.responses == bench.grpo.responses());
  }
}

// The tail is not waited for: it goes on in the next step, or is given up.
TEST_CASE("engines that begin more than they need stop when there are enough", "[grpo]") {
  GrpoBench bench = long_tailed();
  bench.grpo.async_steps = 0;
  bench.grpo.inflight_updates = false;
  const GrpoRun all = bench.run();
  bench.grpo.oversampling = 2;
  const GrpoRun given_up = bench.run();
  bench.grpo.partial_rollouts = true;
  const GrpoRun partial = bench.run();
  const auto last = [](const GrpoRun& run) { return mean_step(run, warm, 40); };
  CHECK(last(given_up) < last(all));
  CHECK(last(partial) < last(given_up));
  CHECK(all.given_up == 0);
  CHECK(partial.given_up == 0);
  CHECK(given_up.given_up > 0);
  for (const GrpoRun* run : {&all, &given_up, &partial}) {
    CHECK(run->generated ==
          Approx(run->trained + run->left_over + run->given_up + run->waiting).epsilon(1e-9));
    for (const StepRecord& step : run->steps) CHECK(step.responses == bench.grpo.responses());
  }
  // Only what goes on is older than the policy.
  CHECK(given_up.steps.back().most_stale == 0);
  CHECK(partial.steps.back().most_stale > 0);
  CHECK(partial.steps.back().mixed > 0);
}

TEST_CASE("rounds are waited for until enough groups have a signal", "[grpo]") {
  GrpoBench bench = long_tailed();
  bench.grpo.async_steps = 0;
  bench.grpo.inflight_updates = false;
  const auto last = [](const GrpoRun& run) { return mean_step(run, warm, 40); };
  const GrpoRun plain = bench.run();
  bench.grpo.round_prompts = bench.grpo.prompts;
  CHECK(last(bench.run()) == Approx(last(plain)).epsilon(1e-9));  // one round of just those
  bench.grpo.round_prompts = 3 * bench.grpo.prompts;
  const GrpoRun once = bench.run();
  bench.grpo.zero_std_fraction = 0.9;
  const GrpoRun often = bench.run();
  CHECK(last(once) > last(plain));
  CHECK(last(often) > 2 * last(once) - last(plain));
  CHECK(once.given_up > once.trained);  // two groups in three
  CHECK(often.filtered_groups > 0);
  for (const GrpoRun* run : {&once, &often}) {
    CHECK(run->generated ==
          Approx(run->trained + run->left_over + run->filtered + run->given_up + run->waiting)
              .epsilon(1e-9));
    for (const StepRecord& step : run->steps) {
      CHECK(step.responses == bench.grpo.responses());
      CHECK(step.most_stale == 0);
    }
  }
}

TEST_CASE("an engine never holds more than its cache, and preempts for it", "[grpo]") {
  GrpoBench bench = long_tailed();
  bench.engines = 2;
  bench.grpo.response_limit = 2000;
  for (const double cache : {2500.0, 8000.0, 30000.0}) {
    bench.cache = cache;
    for (const bool shared : {false, true}) {
      bench.grpo.prefix_caching = shared;
      const GrpoRun run = bench.run();
      std::int64_t preemptions = 0;
      for (const Engine& engine : run.engines) {
        CHECK(engine.totals().most_cached <= cache);
        preemptions += engine.totals().preemptions;
        CHECK((engine.totals().recomputed > 0) == (engine.totals().preemptions > 0));
      }
      if (cache < 10000) CHECK(preemptions > 0);
    }
  }
}

TEST_CASE("weights that wait for the longest response cost the tail at every sync", "[grpo]") {
  GrpoBench bench = long_tailed();
  const double in_flight = mean_step(bench.run(), warm, 40);
  bench.grpo.inflight_updates = false;
  const GrpoRun drained = bench.run();
  CHECK(mean_step(drained, warm, 40) > in_flight);
  for (std::size_t i = warm; i < 40; ++i) CHECK(drained.steps[i].mixed == 0);
}

TEST_CASE("one engine less is never faster, one learner second more neither", "[grpo]") {
  GrpoBench bench = long_tailed();
  double before = 1e30;
  for (const std::size_t engines : {1u, 2u, 4u, 8u}) {
    bench.engines = engines;
    const double step = mean_step(bench.run(), warm, 40);
    CHECK(step <= before * 1.02);
    before = step;
  }
  bench.training_seconds *= 2;
  CHECK(mean_step(bench.run(), warm, 40) >= before * 0.999);
}

// Engines that a batch leaves almost empty read all weights for a few tokens, and the longest
// response takes as long on the emptiest of them.
TEST_CASE("each doubling of the engines of one batch brings less", "[grpo]") {
  GrpoBench bench = long_tailed();
  bench.grpo.async_steps = 0;
  bench.grpo.prompts = 64;
  bench.training_seconds = 0;
  bench.sync = {};
  double before = 0, gain_before = 2.05;
  for (const std::size_t engines : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
    bench.engines = engines;
    const double step = mean_step(bench.run(), warm, 40);
    if (before > 0) {
      CHECK(before / step < gain_before * 1.02);
      gain_before = before / step;
    }
    before = step;
  }
  CHECK(gain_before < 1.15);
}

TEST_CASE("thirty-two nodes and a hundred steps stay under a million events", "[grpo]") {
  GrpoBench bench = long_tailed();
  bench.engines = 96;
  bench.grpo.tensor_parallel = 1;
  bench.grpo.prompts = 32;
  bench.grpo.samples = 8;
  bench.grpo.async_steps = 4;
  bench.grpo.measured_steps = 94;
  const GrpoRun run = bench.run();
  CHECK(run.steps.size() == 100);
  CHECK(run.events < 1'000'000);
}
