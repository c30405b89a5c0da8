// An engine that serves by itself, against closed forms.
#include "workloads/grpo/serving.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/grpo_bench.hpp"

using namespace stepsim;

namespace {

EngineLimits limits(const DecodeModel& decode, std::int64_t sequences = 256) {
  return {.cache = decode.capacity(), .sequences = sequences, .admitted = 1 << 20};
}

Served equal_requests(const GrpoBench& bench, std::int64_t count, std::int64_t at_once,
                      std::int64_t answer = 200) {
  const DecodeModel decode = bench.decode();
  return serve(decode, limits(decode),
               {.count = count, .at_once = at_once, .prompt = 100, .answer = [=](std::uint64_t) {
                  return answer;
                }});
}

}  // namespace

TEST_CASE("one request takes its prompt and an iteration for every token", "[grpo]") {
  const GrpoBench bench = grpo_bench();
  const DecodeModel decode = bench.decode();
  const double prompt = decode.prefill(100, decode.pairs_of(100));
  const Served one = equal_requests(bench, 1, 0);
  CHECK(one.seconds == Approx(prompt + 200 * decode.iteration(1, 100 + 199.0 / 2)));
  CHECK(one.latency == one.seconds);
  CHECK(one.generated == 200);
  CHECK(one.prompted == 100);
  CHECK(one.first_token == Approx(prompt + decode.iteration(1, 100)));
  CHECK(one.per_token == Approx(decode.iteration(1, 100 + 200.0 / 2)).epsilon(1e-3));
}

TEST_CASE("requests one after the other take as much longer as there are", "[grpo]") {
  const GrpoBench bench = grpo_bench();
  CHECK(equal_requests(bench, 7, 1).seconds == Approx(7 * equal_requests(bench, 1, 1).seconds));
}

TEST_CASE("more requests at once are answered faster in all and slower each", "[grpo]") {
  const GrpoBench bench = grpo_bench();
  Served before = equal_requests(bench, 64, 1);
  for (const std::int64_t at_once : {4, 16, 64}) {
    const Served now = equal_requests(bench, 64, at_once);
    CHECK(now.seconds < before.seconds);
    CHECK(now.latency > before.latency);
    CHECK(now.generated == before.generated);
    before = now;
  }
}

TEST_CASE("weights in 8 bits are read in half the time and leave room for more cache", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.grpo.tensor_parallel = 1;
  const DecodeModel full = bench.decode();
  bench.grpo.weights = EngineBits::fp8;
  const DecodeModel small = bench.decode();
  CHECK(small.iteration(1, 100) < 0.65 * full.iteration(1, 100));
  CHECK(small.iteration(1, 100) > 0.5 * full.iteration(1, 100));
  CHECK(small.capacity() > full.capacity());
  CHECK(small.prefill(1000, 0) < 0.6 * full.prefill(1000, 0));
  bench.grpo.cache = EngineBits::fp8;
  CHECK(bench.decode().capacity() == Approx(2 * small.capacity()).epsilon(1e-4));
}

TEST_CASE("pairs of a prompt grow with its square, and behind a window with its length", "[grpo]") {
  const DecodeModel decode = grpo_bench().decode();
  CHECK(decode.pairs_of(2000) == Approx(4 * decode.pairs_of(1000)));
  CHECK(decode.prefill(0, decode.pairs_of(8000)) > 0);
}
