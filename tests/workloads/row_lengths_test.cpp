// Rows that are not filled up: what a step usually works on.
#include "workloads/strategy/row_lengths.hpp"

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/step/least_step.hpp"
#include "workloads/strategy/load.hpp"

using namespace stepsim;

namespace {

constexpr std::int64_t most = 1 << 20;

Job chats(Padding padding, double spread, std::int64_t rows, std::int64_t accumulation = 1) {
  Job job;
  job.sequence = most;
  job.micro_batch = rows;
  job.accumulation = accumulation;
  job.packed = false;
  job.padding = padding;
  job.documents = {.mean = 1000, .spread = spread};
  job.fill = kept_tokens(job) / static_cast<double>(job.sequence);
  return job;
}

std::int64_t usual(const Job& job, Sharding sharding = Sharding::zero3, Rank ranks = 1) {
  TinyStep tiny = tiny_step(sharding, tiny_model(), 1, ranks);
  return usual_rows(job, tiny.strategy, tiny.cluster).sequence;
}

double tokens_of(const Job& job) {
  return job.slots() * job.fill;
}

}  // namespace

TEST_CASE("rows that are all alike are as long as one, however they are padded", "[workloads]") {
  for (const Padding padding : {Padding::longest, Padding::none})
    for (const std::int64_t rows : {1, 7})
      CHECK(usual(chats(padding, 0, rows), Sharding::zero3, 4) == 1000);
  CHECK(usual(chats(Padding::row, 0, 7)) == most);
}

// The larger of two numbers whose logarithms are normal with a standard deviation of s is
// 1 + erf(s / 2) times their mean.
TEST_CASE("the longer of two rows is as long as theory says", "[workloads]") {
  for (const double spread : {0.2, 0.8, 1.5}) {
    const double deviation = std::sqrt(std::log1p(spread * spread));
    const double longer = 1000 * (1 + std::erf(deviation / 2));
    CHECK(std::abs(static_cast<double>(usual(chats(Padding::longest, spread, 2))) - longer) < 2);
    // Two GPUs with a row each wait for the same one.
    CHECK(usual(chats(Padding::longest, spread, 1), Sharding::zero3, 2) ==
          usual(chats(Padding::longest, spread, 2)));
  }
}

TEST_CASE("rows that are cut keep the tokens up to there", "[workloads]") {
  Job job = chats(Padding::longest, 0.8, 4);
  CHECK(std::abs(kept_tokens(job) - 1000) < 0.1);
  job.sequence = 1000;
  // E[min(L, m)] of a mean m: m (2 - 2 N(s / 2)) where half a deviation lies between them.
  const double deviation = std::sqrt(std::log1p(0.64));
  CHECK(std::abs(kept_tokens(job) - 1000 * std::erfc(deviation / 2 / std::sqrt(2.0))) < 1);
  CHECK(usual(job) <= 1000);
}

TEST_CASE("more rows or GPUs that wait make steps longer, and no padding shorter", "[workloads]") {
  const auto longest = [](std::int64_t rows, Rank ranks) {
    return usual(chats(Padding::longest, 0.8, rows), Sharding::zero3, ranks);
  };
  CHECK(longest(1, 1) == 1000);
  CHECK(longest(1, 1) < longest(4, 1));
  CHECK(longest(4, 1) < longest(4, 8));
  CHECK(usual(chats(Padding::none, 0.8, 4)) == 1000);  // a GPU that nobody waits for
  const std::int64_t lie_behind = usual(chats(Padding::none, 0.8, 4), Sharding::zero3, 8);
  CHECK(lie_behind > 1000);
  CHECK(lie_behind < longest(4, 8));
}

// Copies that meet once a step wait for the one with the longest sum, which is closer to the mean.
TEST_CASE("copies that meet once a step wait less than shards that meet in each micro-batch",
          "[workloads]") {
  const Job job = chats(Padding::longest, 0.8, 1, 16);
  CHECK(usual(job, Sharding::zero0, 8) < usual(job, Sharding::zero3, 8));
  CHECK(usual(job, Sharding::zero0, 8) > usual(job, Sharding::zero0, 1));
  CHECK(usual(job, Sharding::zero0, 1) == 1000);
}

TEST_CASE("a usual step has the tokens of the job, and sees as far", "[workloads]") {
  const TinyStep tiny = tiny_step(Sharding::zero3, tiny_model(), 1, 4);
  for (const Padding padding : {Padding::longest, Padding::none}) {
    const Job job = chats(padding, 0.8, 4);
    const Job shorter = usual_rows(job, tiny.strategy, tiny.cluster);
    CHECK(shorter.sequence < job.sequence);
    CHECK_THAT(tokens_of(shorter), exactly(tokens_of(job)));
    CHECK_THAT(load_of(tiny.model, shorter, 0).wanted, exactly(load_of(tiny.model, job, 0).wanted));
    CHECK(usual_rows(shorter, tiny.strategy, tiny.cluster) == shorter);  // it is what it is
    CHECK(full_rows(job).sequence == job.sequence);
  }
}

TEST_CASE("micro-batches one after the other have as many slots as is usual", "[workloads]") {
  constexpr std::size_t count = 512;
  for (const Padding padding : {Padding::longest, Padding::none})
    for (const std::int64_t rows : {1, 2, 8}) {
      const Job job = chats(padding, 0.8, rows);
      const std::vector<double> shares = shares_of_slots(job, count);
      REQUIRE(shares.size() == count);
      double sum = 0;
      for (const double share : shares) sum += share;
      const double mean = sum / count * static_cast<double>(most);
      CHECK(std::abs(mean / static_cast<double>(usual(job)) - 1) < 0.01);
    }
  Job packed = chats(Padding::longest, 0.8, 2);
  packed.packed = true;
  CHECK(shares_of_slots(packed, count).empty());
  CHECK(shares_of_slots(chats(Padding::row, 0.8, 2), count).empty());
}

TEST_CASE("a mask says where rows end that are not alike", "[workloads]") {
  CHECK(chats(Padding::longest, 0.8, 2).masks_ends());
  CHECK(chats(Padding::row, 0.8, 2).masks_ends());
  CHECK_FALSE(chats(Padding::longest, 0.8, 1).masks_ends());  // a row alone has its own length
  CHECK_FALSE(chats(Padding::none, 0.8, 2).masks_ends());     // rows lie one behind the other
  Job full;
  full.packed = false;
  full.micro_batch = 4;
  CHECK_FALSE(full.masks_ends());
  // A usual step is as masked as the job.
  TinyStep tiny = tiny_step(Sharding::zero3);
  const Job job = chats(Padding::longest, 0.8, 2);
  const Job step = usual_rows(job, tiny.strategy, tiny.cluster);
  CHECK(step.masks_ends());
  CHECK(usual_rows(step, tiny.strategy, tiny.cluster) == step);
}

TEST_CASE("the least time of a step is that of its usual rows, the least memory that of full ones",
          "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero2);
  tiny.job = chats(Padding::longest, 0.8, 64);
  tiny.job.sequence = 1 << 16;
  LeastSteps least(tiny.cluster);
  const LeastStep padded = least.of(tiny.input());
  const Seconds in_turns = least.in_turns(tiny.input());
  const Job job = tiny.job;
  tiny.job = usual_rows(job, tiny.strategy, tiny.cluster);
  CHECK(least.of(tiny.input()).time.value == padded.time.value);
  CHECK(least.in_turns(tiny.input()).value == in_turns.value);
  tiny.job = full_rows(job);
  CHECK(least.of(tiny.input()).bytes == padded.bytes);
  CHECK(least.of(tiny.input()).time.value > padded.time.value);
}
