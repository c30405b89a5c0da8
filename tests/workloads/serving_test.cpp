// An engine that serves by itself, against closed forms and against itself step by step.
#include "tests/support/serving.hpp"

#include "scenarios/scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/grpo_bench.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/grpo/lengths.hpp"
#include "workloads/model/model_catalog.hpp"

using namespace stepsim;

namespace {

constexpr double exact = 1e-9;

EngineLimits limits(const DecodeModel& decode, std::int64_t sequences = 256) {
  return {.cache = decode.capacity(), .sequences = sequences, .admitted = 1 << 20};
}

Requests equal(std::int64_t count, std::int64_t prompt, std::int64_t answer,
               std::int64_t at_once = 0) {
  return {.count = count,
          .at_once = at_once,
          .prompt = [=](std::uint64_t) { return prompt; },
          .answer = [=](std::uint64_t) { return answer; }};
}

Served equal_requests(const GrpoBench& bench, std::int64_t count, std::int64_t at_once,
                      std::int64_t answer = 200) {
  const DecodeModel decode = bench.decode();
  return serve(decode, limits(decode), equal(count, 100, answer, at_once));
}

// Prompts and answers of many lengths.
Requests varied(std::int64_t count, std::int64_t at_once) {
  const auto tokens = [](double mean, std::uint64_t seed) {
    Grpo grpo;
    grpo.response_limit = 600;
    grpo.lengths = lengths_with_mean(mean, 1.0, grpo.response_limit, seed);
    return [grpo](std::uint64_t n) { return response_tokens(grpo, n, 0); };
  };
  return {.count = count, .at_once = at_once, .prompt = tokens(150, 2), .answer = tokens(120, 1)};
}

// One of each way to schedule, with a cache for a few sequences and with one for all, on GPUs that
// share their sequences and on three that do not.
std::vector<EngineLimits> ways() {
  std::vector<EngineLimits> list;
  for (const auto& [ranks, cache] :
       {std::pair<std::size_t, double>{1, 2000.0}, {1, 6000.0}, {1, 1e6}, {3, 2000.0}, {3, 1e6}})
    for (const bool caching : {false, true})
      for (const bool prompts_first : {false, true})
        for (const double share : {0.0, 0.7, 1.0}) {
          EngineLimits one{.ranks = ranks, .cache = cache, .sequences = 24, .admitted = 1 << 20};
          one.prefix_caching = caching;
          one.tokens = 256;
          one.prompts_first = prompts_first;
          one.reserve = {.own = share > 0, .first = share, .last = share / 4, .steps = 300};
          list.push_back(one);
        }
  return list;
}

}  // namespace

TEST_CASE("one request takes a step for its prompt and one for every further token", "[grpo]") {
  const GrpoBench bench = grpo_bench();
  const DecodeModel decode = bench.decode();
  const double prompt = decode.step({.prompt = 100, .pairs = decode.pairs_of(100), .sampled = 1});
  const Served one = equal_requests(bench, 1, 0);
  CHECK(one.seconds == Approx(prompt + 199 * decode.iteration(1, 101 + 198.0 / 2)).epsilon(exact));
  CHECK(one.latency == one.seconds);
  CHECK(one.generated == 200);
  CHECK(one.prompted == 100);
  CHECK(one.first_token == Approx(prompt).epsilon(exact));
  CHECK(one.per_token == Approx(decode.iteration(1, 101 + 198.0 / 2)).epsilon(exact));
}

TEST_CASE("equal answers without prompts and limits take their steps one by one", "[grpo]") {
  const DecodeModel decode = grpo_bench().decode();
  for (const std::int64_t batch : {1, 7, 64, 200}) {
    const double n = static_cast<double>(batch);
    double seconds = decode.step({.prompt = n, .pairs = n * decode.pairs_of(1), .sampled = n});
    for (int token = 1; token < 300; ++token) seconds += decode.iteration(n, n * (1 + token));
    const Served served = serve(decode, limits(decode), equal(batch, 1, 300));
    CHECK(served.seconds == Approx(seconds).epsilon(exact));
    CHECK(served.totals.preemptions == 0);
  }
}

TEST_CASE("steps taken together are those taken one by one", "[grpo]") {
  const GrpoBench bench = grpo_bench();
  const DecodeModel decode = bench.decode();
  for (const std::int64_t at_once : {0, 12})
    for (EngineLimits way : ways()) {
      const Served blocks = serve(decode, way, varied(60, at_once));
      way.together = 1;
      const Served steps = serve(decode, way, varied(60, at_once));
      CAPTURE(at_once, way.cache, way.prefix_caching, way.prompts_first, way.reserve.first);
      CHECK(blocks.seconds == Approx(steps.seconds).epsilon(exact));
      CHECK(blocks.latency == Approx(steps.latency).epsilon(exact));
      CHECK(blocks.first_token == Approx(steps.first_token).epsilon(exact));
      CHECK(blocks.per_token == Approx(steps.per_token).epsilon(exact));
      CHECK(blocks.totals.preemptions == steps.totals.preemptions);
      CHECK(blocks.totals.recomputed == steps.totals.recomputed);
      CHECK(blocks.totals.blocks < steps.totals.blocks);
    }
}

TEST_CASE("every token of a prompt is computed, every one of an answer is made once", "[grpo]") {
  const DecodeModel decode = grpo_bench().decode();
  for (const EngineLimits& way : ways()) {
    const Served served = serve(decode, way, varied(60, 0));
    CAPTURE(way.cache, way.prefix_caching, way.prompts_first, way.reserve.first);
    CHECK(static_cast<double>(served.totals.tokens) == served.generated);
    // What comes back beside what was computed may end in a decoded token.
    CHECK(served.totals.prefilled - served.totals.recomputed >= served.prompted);
    CHECK(served.totals.prefilled - served.totals.recomputed <=
          served.prompted + static_cast<double>(served.totals.preemptions));
    CHECK(served.totals.most_cached <= way.cache * static_cast<double>(way.ranks));
  }
}

TEST_CASE("requests in an engine are their rate times the time of each", "[grpo]") {
  const DecodeModel decode = grpo_bench().decode();
  for (const std::int64_t at_once : {0, 1, 8, 40})
    for (const EngineLimits& way : ways()) {
      const Served served = serve(decode, way, varied(60, at_once));
      CHECK(served.held == Approx(60 / served.seconds * served.latency).epsilon(exact));
      CHECK(served.running <= served.held);
    }
}

TEST_CASE("no step has more tokens than its budget, and prompts slow down answers", "[grpo]") {
  const DecodeModel decode = grpo_bench().decode();
  EngineLimits narrow = limits(decode, 64);
  narrow.tokens = 300;
  Engine engine(decode, narrow);
  std::vector<Sequence> group;
  for (std::uint32_t i = 0; i < 32; ++i)
    group.push_back({.group = i, .sample = 0, .prompt = 1000, .target = 50});
  engine.give(0, group);
  while (!engine.idle()) engine.finish_block(engine.next());
  double prompts = 0;
  for (const StepBlock& block : engine.log()) {
    CHECK(block.prefilled <= 300);
    prompts += block.prefilled;
  }
  CHECK(prompts == 32 * 1000);
  // Alone an answer waits for its own prompt only; among others each of its steps has a part of
  // one.
  const Served alone = serve(decode, narrow, equal(8, 1000, 50, 1));
  const Served among = serve(decode, narrow, equal(200, 1000, 50));
  CHECK(among.per_token > 1.3 * decode.iteration(16, 16 * 1025));
  CHECK(among.per_token > 1.3 * alone.per_token);
}

TEST_CASE("GPUs with sequences of their own wait for the one with most to do", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.cluster = load_cluster(source_data(), {.name = "h200-8"});
  bench.model = load_model(source_data(), "qwen3-235b-a22b");
  bench.stack = read_engine_stack(open_entry(source_data(), engine_shelf, "tensorrt-llm").root());
  bench.grpo.tensor_parallel = 8;
  bench.grpo.weights = EngineBits::fp8;
  const DecodeModel decode = bench.decode();
  REQUIRE(decode.batches() == 8);
  const auto step = [&](std::vector<double> prompts) {
    std::vector<StepBatch> ranks;
    for (const double tokens : prompts)
      ranks.push_back({.prompt = tokens, .pairs = decode.pairs_of(tokens), .sampled = 1});
    return decode.step(ranks);
  };
  const double even = step({2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048});
  const double uneven = step({8192, 8192, 0, 0, 0, 0, 0, 0});
  const double one = step({8192, 0, 0, 0, 0, 0, 0, 0});
  CHECK(uneven > 1.5 * even);  // the same tokens
  CHECK(one > 0.5 * uneven);   // half of them: experts alone are shared by all
  CHECK(one < uneven);
  // As one batch it is dealt out evenly.
  CHECK(decode.step({.prompt = 8 * 2048, .pairs = 8 * decode.pairs_of(2048), .sampled = 8}) ==
        Approx(even));
}

TEST_CASE("where prompts go first, answers stand still, and less is admitted", "[grpo]") {
  const DecodeModel decode = grpo_bench().decode();
  EngineLimits mixed = limits(decode, 64);
  EngineLimits first = mixed;
  first.prompts_first = true;
  const Served a = serve(decode, mixed, equal(60, 2000, 60));
  const Served b = serve(decode, first, equal(60, 2000, 60));
  CHECK(b.first_token < a.first_token);
  CHECK(b.per_token > a.per_token);
  EngineLimits small = mixed;
  small.cache = 8000;
  const Served runs_over = serve(decode, small, equal(40, 400, 400));
  small.reserve = {.own = true, .first = 1, .last = 1, .steps = 1};
  const Served reserved = serve(decode, small, equal(40, 400, 400));
  CHECK(runs_over.totals.preemptions > 0);
  CHECK(reserved.totals.preemptions == 0);
  CHECK(reserved.running < runs_over.running);
}

TEST_CASE("what was put out is found again where nobody wrote over it", "[grpo]") {
  const DecodeModel decode = grpo_bench().decode();
  EngineLimits small = limits(decode, 64);
  small.cache = 8000;
  const Served anew = serve(decode, small, equal(40, 400, 400));
  small.prefix_caching = true;
  const Served kept = serve(decode, small, equal(40, 400, 400));
  CHECK(kept.totals.preemptions > 0);
  CHECK(kept.totals.recomputed < 0.8 * anew.totals.recomputed);
  CHECK(kept.seconds < anew.seconds);
}

// The second of two finds no block while it is at its prompt, 383 tokens behind its beginning, and
// comes back when the first is done.
TEST_CASE("a prompt that was put out half-way goes on behind its last whole block", "[grpo]") {
  const DecodeModel decode = grpo_bench().decode();
  EngineLimits small = limits(decode, 64);
  small.cache = 1024;
  small.block = 64;
  small.tokens = 4;
  for (const bool caching : {false, true}) {
    CAPTURE(caching);
    small.prefix_caching = caching;
    const Served all = serve(decode, small, equal(2, 450, 150));
    CHECK(all.totals.preemptions == 1);
    CHECK(all.totals.prefilled - all.totals.recomputed == 2 * 450);
    CHECK(all.totals.recomputed == (caching ? 383 % 64 : 383));
  }
}

TEST_CASE("blocks keep what was in them until they are handed out again", "[grpo]") {
  BlockPool pool(10);
  pool.take(6);
  pool.give_back({1, 0}, 4);
  CHECK(pool.free() == 8);
  CHECK(pool.kept({1, 0}) == 4);
  pool.take(6);  // four that nobody used, then the end of what is kept
  CHECK(pool.kept({1, 0}) == 2);
  pool.take_again({1, 0}, 2);
  CHECK(pool.kept({1, 0}) == 0);
  CHECK(pool.free() == 0);
  pool.give_back(10);
  CHECK(pool.used() == 0);
}

TEST_CASE("requests one after the other take as much longer as there are", "[grpo]") {
  const GrpoBench bench = grpo_bench();
  CHECK(equal_requests(bench, 7, 1).seconds == Approx(7 * equal_requests(bench, 1, 1).seconds));
}

TEST_CASE("a server that takes requests one after the other delays all of them", "[grpo]") {
  const DecodeModel decode = grpo_bench().decode();
  Requests requests = equal(50, 100, 20);
  const Served quick = serve(decode, limits(decode), requests);
  requests.front = 0.01;
  const Served slow = serve(decode, limits(decode), requests);
  CHECK(slow.seconds == Approx(quick.seconds + 0.5));
  CHECK(slow.first_token == Approx(quick.first_token + 0.5));
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
  CHECK(small.step({.prompt = 4096}) < 0.62 * full.step({.prompt = 4096}));
  bench.grpo.cache = EngineBits::fp8;
  CHECK(bench.decode().capacity() == Approx(2 * small.capacity()).epsilon(1e-4));
}

TEST_CASE("pairs of a prompt grow with its square, and behind a window with its length", "[grpo]") {
  const DecodeModel decode = grpo_bench().decode();
  CHECK(decode.pairs_of(2000) == Approx(4 * decode.pairs_of(1000)));
  CHECK(decode.step({.prompt = 1, .pairs = decode.pairs_of(8000)}) > decode.step({.prompt = 1}));
}

// FlashAttention-2 reads keys and values once for each query head as soon as a prompt is in the
// batch; later kernels do not.
TEST_CASE("a prompt in the batch makes older kernels read the cache for every head", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.model = load_model(source_data(), "qwen3-32b");
  for (const auto& [node, heads] : {std::pair{"a100-8", 8.0}, {"h100-8", 1.0}}) {
    bench.cluster = load_cluster(source_data(), {.name = node});
    const DecodeModel decode = bench.decode();
    const double alone = decode.iteration(8, 1e5) - decode.iteration(8, 0);
    const double mixed = decode.step({.decoding = 8, .cached = 1e5, .prompt = 1000}) -
                         decode.step({.decoding = 8, .cached = 0, .prompt = 1000});
    CHECK(mixed == Approx(heads * alone));
  }
}

// Engines without graphs, one sequence: 0.26 to 0.40 ms a layer in published pairs, whatever the
// number of GPUs.
TEST_CASE("without graphs the host is as slow on many GPUs as on one", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.cluster = load_cluster(source_data(), {.name = "h100-8"});
  bench.model = load_model(source_data(), "qwen3-32b");
  for (const std::uint32_t gpus : {2U, 4U, 8U}) {
    bench.grpo.tensor_parallel = gpus;
    bench.grpo.enforce_eager = false;
    const double graphs = bench.decode().iteration(1, 1000);
    bench.grpo.enforce_eager = true;
    const double eager = bench.decode().iteration(1, 1000);
    CAPTURE(gpus, graphs, eager);
    CHECK(eager > 17e-3);
    CHECK(eager < 28e-3);
    CHECK(eager > (gpus == 8 ? 2.4 : 1.3) * graphs);
  }
}

TEST_CASE("GPUs of an engine have whole heads, or copies of one", "[grpo]") {
  using Words = std::vector<std::string>;
  const Model model = load_model(source_data(), "qwen3-32b");  // 64 heads, 8 of keys
  for (const std::int64_t gpus : {1, 2, 4, 8, 16, 32}) CHECK(unshared(model, gpus).empty());
  CHECK(unshared(model, 3) ==
        Words{"3 does not divide the 64 heads of qwen3-32b",
              "3 neither divides the 8 key-value heads of qwen3-32b nor is a multiple of them"});
  Model odd = model;
  odd.attention.kv_heads = 6;
  odd.attention.heads = 60;
  CHECK(unshared(odd, 4) ==
        Words{"4 neither divides the 6 key-value heads of qwen3-32b nor is a multiple of them"});
  CHECK(unshared(odd, 12).empty());
}

TEST_CASE("answers are padded to the sizes that were captured, prompts are not", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.grpo.tensor_parallel = 1;
  bench.stack.graphs.answers = {1, 64, 128};
  const DecodeModel listed = bench.decode();
  bench.stack.graphs.answers = {100000};
  const DecodeModel padded = bench.decode();
  bench.grpo.enforce_eager = false;
  // The head, attention and the host have as many sequences as there are: products alone grow.
  const auto products = [&](const DecodeModel& decode, double sequences) {
    return decode.iteration(sequences, 0);
  };
  CHECK(products(listed, 65) - products(listed, 64) >
        products(listed, 128) - products(listed, 127));
  CHECK(products(padded, 65) > products(listed, 65));
  // Beyond the largest, and with a prompt in the step, nothing is.
  bench.stack.graphs.answers = {1};
  const DecodeModel none = bench.decode();
  CHECK(listed.iteration(129, 0) == none.iteration(129, 0));
  const StepBatch mixed{.decoding = 65, .cached = 0, .prompt = 10, .pairs = listed.pairs_of(10)};
  CHECK(listed.step(mixed) == none.step(mixed));
  CHECK(listed.iteration(65, 0) > none.iteration(65, 0));
}

TEST_CASE("a step of more sequences never takes less time", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.cluster = load_cluster(source_data(), {.name = "h100-8"});
  for (const std::string_view name : {"qwen3-32b", "llama-3.1-405b"}) {
    bench.model = load_model(source_data(), std::string(name));
    bench.grpo.tensor_parallel = 8;
    const DecodeModel decode = bench.decode();
    double before = 0;
    for (std::int64_t sequences = 1; sequences <= 4096; ++sequences) {
      const double now = decode.iteration(static_cast<double>(sequences), 0);
      if (now < before) FAIL_CHECK(name << " with " << sequences);
      before = now;
    }
  }
}

TEST_CASE("an engine that is the learner takes its passes, and copies the cache beside them",
          "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.grpo.tensor_parallel = 1;
  Document entry = open_entry(source_data(), engine_shelf, "transformers");
  bench.stack = read_engine_stack(entry.root());
  const double beside = bench.stack.host.iteration.number(),
               each = bench.stack.host.sequence.number();
  DecodeModel decode = bench.decode();
  decode.take_passes([](double) { return PassTime{0.040, 0.010}; });
  // The GPU has to do with the cache what hides behind the host until that is shorter.
  CHECK(decode.iteration(1, 100) == Approx(0.040 + beside + each));
  const double some = decode.iteration(8, 1e6) - beside - 8 * each,
               more = decode.iteration(8, 2e6) - beside - 8 * each;
  CHECK(some > 0.040);
  CHECK(more - some == Approx(some - 0.010).epsilon(1e-9));
  CHECK(decode.steps(8, 1e6, 100, 0) > 100 * decode.iteration(8, 1e6));
  // OLMo-2-32B has 40 heads for 8 of keys: old and new, then five copies that are read again.
  bench.stack.repeats_heads = false;
  DecodeModel shared = bench.decode();
  shared.take_passes([](double) { return PassTime{0.040, 0.010}; });
  const double once = shared.iteration(8, 2e6) - beside - 8 * each - 0.010;
  CHECK((more - 0.010) / once == Approx((5 + 2 + 1 + 5) / 3.0));
  CHECK(decode.generating_bytes(2, 100) > shared.generating_bytes(2, 100));
}
