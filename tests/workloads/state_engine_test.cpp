// Engines of models with layers that do not attend: a state for each sequence, whatever its length.
#include <cmath>

#include "scenarios/read/entries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/grpo_bench.hpp"
#include "tests/support/serving.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/model/mixers.hpp"
#include "workloads/model/model_catalog.hpp"

using namespace stepsim;

namespace {

constexpr double exact = 1e-9;

GrpoBench bench_of(const char* model, std::uint32_t gpus = 1, const char* engine = "vllm") {
  GrpoBench bench = grpo_bench();
  bench.cluster = load_cluster(source_data(), {.name = "h200-8"});
  bench.model = load_model(source_data(), model);
  bench.stack = read_engine_stack(open_entry(source_data(), engine_shelf, engine).root());
  load_mixers(source_data(), {}, bench.stack);
  bench.grpo.tensor_parallel = gpus;
  bench.grpo.memory_utilization = 0.9;
  bench.grpo.batched_sequences = 1 << 16;
  return bench;
}

EngineLimits limits_of_all(const GrpoBench& bench, const DecodeModel& decode) {
  EngineLimits limits = limits_of(decode, bench.stack, bench.grpo);
  limits.admitted = 1 << 20;
  return limits;
}

Requests alike(std::int64_t count, std::int64_t prompt, std::int64_t answer) {
  return {.count = count,
          .prompt = [=](std::uint64_t) { return prompt; },
          .answer = [=](std::uint64_t) { return answer; }};
}

// No two next to each other are as long.
Requests unlike(std::int64_t count) {
  return {.count = count,
          .prompt = [](std::uint64_t n) { return static_cast<std::int64_t>(20 + 37 * (n % 11)); },
          .answer = [](std::uint64_t n) { return static_cast<std::int64_t>(40 + 91 * (n % 7)); }};
}

constexpr auto models = {"qwen3-next-80b-a3b", "qwen3.5-9b", "nemotron-3-nano-30b-a3b",
                         "nemotron-nano-9b-v2"};

}  // namespace

// Logs of vLLM: 544 tokens for Qwen3-Next; 784 and pages of 3,207,168 bytes for 16 heads of keys
// and 48 of values in 32 bits.
TEST_CASE("blocks of a cache are as large as a layer's state needs", "[grpo]") {
  struct Known {
    const char* model;
    double bytes, block;  // of a layer's state; tokens
    std::int64_t blocks;
  };
  for (const Known& known :
       {Known{"qwen3-next-80b-a3b", 1097728, 544, 3}, Known{"qwen3.5-27b", 3207168, 784, 3},
        Known{"nemotron-3-nano-30b-a3b", 2134016, 2096, 4}}) {
    CAPTURE(known.model);
    const GrpoBench bench = bench_of(known.model);
    const Model& model = bench.model;
    CHECK(state_bytes(*model.mixer, 1) == known.bytes);
    const DecodeModel decode = bench.decode();
    CHECK(decode.block() == known.block);
    CHECK(decode.state_blocks() == known.blocks);
    CHECK(decode.state_bytes() == known.bytes * static_cast<double>(mixer_layers(model)));
    // Two heads of keys and values share a layer's cache, in layers that attend.
    const double token = 2.0 * 2 * static_cast<double>(model.attention.kv_heads) *
                         static_cast<double>(model.attention.head_dim);
    CHECK(decode.bytes_per_token() == token * static_cast<double>(attention_layers(model)));
    CHECK(decode.taken_by(1) == known.block * static_cast<double>(1 + known.blocks));
    CHECK(decode.taken_by(known.block) == decode.taken_by(1));
    CHECK(decode.taken_by(10 * known.block) - decode.taken_by(1) == 9 * known.block);
  }
}

TEST_CASE("GPUs of an engine have heads of a state each", "[grpo]") {
  for (const char* name : models) {
    CAPTURE(name);
    const Mixer mixer = *load_model(source_data(), name).mixer;
    CHECK(4 * state_bytes(mixer, 4) == Approx(state_bytes(mixer, 1)).epsilon(exact));
    // More GPUs than groups of heads: what a group shares is there several times.
    const double many = 2 * static_cast<double>(mixer.groups);
    CHECK(many * state_bytes(mixer, many) > state_bytes(mixer, 1));
  }
}

TEST_CASE("equal answers of layers with a state take their steps one by one", "[grpo]") {
  for (const char* name : models) {
    CAPTURE(name);
    const GrpoBench bench = bench_of(name, 2);
    const DecodeModel decode = bench.decode();
    for (const std::int64_t batch : {1, 7, 64}) {
      const double n = static_cast<double>(batch);
      double seconds = decode.step({.prompt = n, .pairs = n * decode.pairs_of(1), .sampled = n});
      for (int token = 1; token < 300; ++token) seconds += decode.iteration(n, n * (1 + token));
      const Served served = serve(decode, limits_of_all(bench, decode), alike(batch, 1, 300));
      CHECK(served.seconds == Approx(seconds).epsilon(exact));
      CHECK(served.totals.preemptions == 0);
      CHECK(served.totals.most_cached == n * decode.taken_by(300));
    }
  }
}

TEST_CASE("each sequence of a step reads its states and writes them, however long it is",
          "[grpo]") {
  for (const char* name : models) {
    CAPTURE(name);
    GrpoBench bench = bench_of(name, 2);
    const DecodeModel decode = bench.decode();
    bench.model.mixer->wide_state = !bench.model.mixer->wide_state;
    const DecodeModel other = bench.decode();
    const double bytes = std::abs(decode.state_bytes() - other.state_bytes());
    const double channels = static_cast<double>(bench.model.mixer->channels());
    const double numbers = channels / 2 * static_cast<double>(bench.model.mixer->state);
    CHECK(bytes == 2 * numbers * static_cast<double>(mixer_layers(bench.model)));
    const double rate =
        bench.cluster.gpu.memory.stream.number() * bench.stack.kernels.cache.number();
    for (const double sequences : {1.0, 16.0, 200.0})
      for (const double length : {0.0, 1000.0, 100000.0}) {
        const double apart = std::abs(decode.iteration(sequences, sequences * length) -
                                      other.iteration(sequences, sequences * length));
        CHECK(apart == Approx(sequences * 2 * bytes / rate).epsilon(1e-6));
      }
  }
}

TEST_CASE("a model whose layers all attend is none with states", "[grpo]") {
  GrpoBench plain = bench_of("qwen3-8b");
  GrpoBench without = plain;
  without.model.mixer = *load_model(source_data(), "qwen3.5-9b").mixer;
  const DecodeModel a = plain.decode(), b = without.decode();
  CHECK(a.capacity() == b.capacity());
  CHECK(a.block() == b.block());
  CHECK(b.state_blocks() == 0);
  CHECK(b.taken_by(1000) == 1000);
  for (const StepBatch& batch :
       {StepBatch{.decoding = 32, .cached = 1e5}, StepBatch{.prompt = 2000, .pairs = 1e7}})
    CHECK(a.step(batch) == b.step(batch));
}

TEST_CASE("a context costs as much less as fewer layers attend", "[grpo]") {
  for (const char* name : models) {
    CAPTURE(name);
    GrpoBench bench = bench_of(name, 2);
    const DecodeModel some = bench.decode();
    for (LayerKind& kind : bench.model.kinds)
      if (kind.mixes == LayerKind::Mixes::mixer) kind.mixes = LayerKind::Mixes::attention;
    const double share = static_cast<double>(mixer_layers(load_model(source_data(), name))) /
                         static_cast<double>(attention_layers(bench.model));
    const DecodeModel all = bench.decode();
    const auto grows = [](const DecodeModel& decode) {
      return decode.iteration(8, 8e5) - decode.iteration(8, 4e5);
    };
    CHECK(grows(some) == Approx((1 - share) * grows(all)).epsilon(1e-6));
    CHECK(some.pairs_of(5000) == Approx((1 - share) * all.pairs_of(5000)).epsilon(exact));
  }
}

// Everything that can be observed of an engine holds with states too.
TEST_CASE("engines with states keep their tokens, their cache and their steps", "[grpo]") {
  const GrpoBench bench = bench_of("qwen3-next-80b-a3b", 4);
  const DecodeModel decode = bench.decode();
  for (const bool caching : {false, true})
    for (const bool prompts_first : {false, true})
      for (const double share : {0.0, 0.7})
        for (const double sequences : {1.5, 4.0, 100.0}) {
          EngineLimits way = limits_of_all(bench, decode);
          way.prefix_caching = caching;
          way.prompts_first = prompts_first;
          way.states = caching ? 6 : 3;
          way.block = 272;
          way.tokens = 300;
          way.cache = std::floor(sequences * static_cast<double>(way.states + 4)) * way.block;
          way.reserve = {.own = share > 0, .first = share, .last = share / 4, .steps = 300};
          CAPTURE(caching, prompts_first, share, sequences);
          const Served blocks = serve(decode, way, unlike(60));
          CHECK(static_cast<double>(blocks.totals.tokens) == blocks.generated);
          CHECK(blocks.totals.prefilled - blocks.totals.recomputed >= blocks.prompted);
          CHECK(blocks.totals.most_cached <= way.cache);
          CHECK(blocks.running <= 1.5 * sequences + 1);
          way.together = 1;
          const Served steps = serve(decode, way, unlike(60));
          CHECK(blocks.seconds == Approx(steps.seconds).epsilon(exact));
          CHECK(blocks.totals.preemptions == steps.totals.preemptions);
        }
}

TEST_CASE("as many sequences run as there are blocks for their states", "[grpo]") {
  const GrpoBench bench = bench_of("qwen3-next-80b-a3b", 4);
  const DecodeModel decode = bench.decode();
  for (const std::int64_t most : {1, 5, 12}) {
    CAPTURE(most);
    EngineLimits limits = limits_of_all(bench, decode);
    limits.cache = static_cast<double>(most) * decode.taken_by(200);
    const Served served = serve(decode, limits, alike(3 * most, 100, 100));
    CHECK(served.totals.preemptions == 0);
    const Served in_turn = serve(decode, limits, alike(most, 100, 100));
    CHECK(served.seconds == Approx(3 * in_turn.seconds).epsilon(exact));
  }
}

TEST_CASE("prompts go through a state in chunks, at the rate of training's kernels", "[grpo]") {
  GrpoBench bench = bench_of("nemotron-nano-9b-v2");
  const DecodeModel fast = bench.decode();
  bench.stack.mixers.rates.state_space_forward.value = {
      bench.stack.mixers.rates.state_space_forward.number() / 10};
  const DecodeModel slow = bench.decode();
  const double flops =
      mixer_flops(*bench.model.mixer).forward * static_cast<double>(mixer_layers(bench.model));
  const Gpu& gpu = bench.cluster.gpu;
  const double rate = gpu.gemm.rate.number() * gpu.gemm.sustained.number() *
                      bench.stack.mixers.rates.state_space_forward.number();
  const auto more = [&](double tokens) {
    return slow.step({.prompt = tokens}) - fast.step({.prompt = tokens});
  };
  CHECK(more(4000) == Approx(2 * more(2000)).epsilon(exact));
  CHECK(more(2000) <= 2000 * flops / rate);
  CHECK(more(2000) > 0.5 * 2000 * flops / rate);
  CHECK(slow.iteration(16, 1000) == fast.iteration(16, 1000));
}

TEST_CASE("SGLang has states in memory of their own, which bounds its batch", "[grpo]") {
  GrpoBench bench = bench_of("qwen3-next-80b-a3b", 4, "sglang");
  const DecodeModel decode = bench.decode();
  CHECK(decode.block() == 1);
  CHECK(decode.state_blocks() == 0);
  // 32 bits, whatever the model says; 0.9 of what keys and values have.
  CHECK(decode.state_bytes() == 36 * (2.0 * 1048576 + 49152) / 4);
  const double token = decode.bytes_per_token() / 2;  // two heads on four GPUs
  CHECK(decode.most_sequences() * decode.state_bytes() ==
        Approx(0.9 * decode.capacity() * token).epsilon(1e-3));
  CHECK(limits_of(decode, bench.stack, bench.grpo).sequences ==
        static_cast<std::int64_t>(decode.most_sequences()));
  bench.grpo.prefix_caching = true;
  CHECK(bench.decode().most_sequences() == std::floor(decode.most_sequences() / 3));
}
