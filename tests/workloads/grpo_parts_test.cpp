// Lengths, packing, placement and the cost of an iteration.
#include <algorithm>
#include <array>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/grpo_bench.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/grpo/lengths.hpp"
#include "workloads/grpo/packing.hpp"
#include "workloads/grpo/placement.hpp"
#include "workloads/model/model_catalog.hpp"

using namespace stepsim;

TEST_CASE("drawn lengths have the mean of their distribution", "[grpo]") {
  Grpo grpo;
  grpo.response_limit = 4096;
  for (const double sigma : {0.5, 0.9}) {
    grpo.lengths = {
        .kind = LengthKind::lognormal, .mean = 1500, .sigma = sigma, .list = {}, .seed = 3};
    double sum = 0;
    constexpr int groups = 4000, samples = 10;
    for (std::uint64_t g = 0; g < groups; ++g)
      for (std::uint64_t s = 0; s < samples; ++s) {
        const std::int64_t tokens = response_tokens(grpo, g, s);
        REQUIRE(tokens >= 1);
        REQUIRE(tokens <= grpo.response_limit);
        sum += static_cast<double>(tokens);
      }
    CHECK(sum / (groups * samples) == Approx(mean_response(grpo)).epsilon(0.02));
  }
}

TEST_CASE("the longest of a group follows the quantile of its distribution", "[grpo]") {
  Grpo grpo;
  grpo.response_limit = 1 << 24;
  grpo.lengths = {.kind = LengthKind::lognormal, .mean = 1000, .sigma = 0.9, .list = {}, .seed = 5};
  // Blom's approximation of the mean maximum, checked by others to 7 percent.
  for (const auto& [samples, ratio] : {std::pair{4, 2.0}, std::pair{8, 2.8}, std::pair{64, 6.0}}) {
    double sum = 0;
    constexpr int groups = 3000;
    for (std::uint64_t g = 0; g < groups; ++g) {
      std::int64_t longest = 0;
      for (int s = 0; s < samples; ++s)
        longest = std::max(longest, response_tokens(grpo, g, static_cast<std::uint64_t>(s)));
      sum += static_cast<double>(longest);
    }
    CHECK(sum / groups / 1000 == Approx(ratio).epsilon(0.1));
  }
}

TEST_CASE("a draw does not depend on what else is drawn", "[grpo]") {
  Grpo few, many;
  few.lengths.mean = many.lengths.mean = 100;
  many.samples = 64;
  CHECK(response_tokens(few, 7, 3) == response_tokens(many, 7, 3));
  many.lengths.seed = 2;
  CHECK(response_tokens(few, 7, 3) != response_tokens(many, 7, 3));
}

TEST_CASE("packing keeps every token or counts it as left over", "[grpo]") {
  const std::array<std::int64_t, 9> lengths{500, 700, 300, 900, 100, 100, 1000, 50, 600};
  for (const std::size_t learners : {1u, 2u, 3u, 4u, 8u}) {
    const Packed packed = pack(lengths, 1200, learners);
    CHECK(packed.packs.size() % learners == 0);
    CHECK(packed.tokens + packed.dropped == 4250);
    for (const double tokens : packed.packs) CHECK(tokens <= 1200);
  }
  CHECK(pack(lengths, 1200, 1).packs == std::vector<double>{1200, 1200, 1200, 650});
}

TEST_CASE("shares drop nothing, and wait for the learner with the longest", "[grpo]") {
  Grpo grpo;
  grpo.batching = Batching::shares;
  grpo.pack_length = 1000;
  grpo.mini_batches = 2;
  // Two updates of four; the second learner of the first has 1500 tokens, two micro-batches of all.
  const std::vector<std::int64_t> lengths{100, 200, 700, 800, 50, 50, 60, 60};
  const Updates updates = updates_of(grpo, lengths, 2);
  CHECK(updates.rounds == std::vector<std::vector<double>>{{750, 750}, {120}});
  CHECK(updates.micro_batches == 6);
  CHECK(updates.tokens == 2020);
  CHECK(updates.dropped == 0);
  // One that is longer than the limit is not cut.
  grpo.mini_batches = 1;
  CHECK(updates_of(grpo, std::vector<std::int64_t>{1600, 10}, 2).rounds ==
        std::vector<std::vector<double>>{{1600}});
}

TEST_CASE("padded rows take as long as the longest of each micro-batch", "[grpo]") {
  Grpo grpo;
  grpo.batching = Batching::rows;
  grpo.prompt_limit = 24;
  grpo.response_limit = 1000;
  grpo.pack_length = 2048;  // two rows of full length
  grpo.mini_batches = 1;
  const std::vector<std::int64_t> lengths{100, 900, 300, 200, 50, 60, 70, 80};
  const Updates updates = updates_of(grpo, lengths, 2);
  REQUIRE(updates.rounds.size() == 1);
  CHECK(updates.rounds.front() == std::vector<double>{1800, 600});
  CHECK(updates.tokens == 1760);
  CHECK(updates.dropped == 0);
  grpo.batching = Batching::padded;  // of all rows that a learner has
  CHECK(updates_of(grpo, lengths, 2).rounds.front() == std::vector<double>{1800, 1800});
}

TEST_CASE("rows that are counted hold what they hold", "[grpo]") {
  Grpo grpo;
  grpo.batching = Batching::shares;
  grpo.pack_rows = 2;
  grpo.pack_length = 2000;
  const std::vector<std::int64_t> lengths{100, 900, 300, 200, 50, 60, 70, 80};
  CHECK(updates_of(grpo, lengths, 2).rounds == std::vector<std::vector<double>>{{1000, 500}});
  grpo.pack_length = 950;  // fewer where two are too many
  CHECK(updates_of(grpo, lengths, 2).rounds == std::vector<std::vector<double>>{{110, 900, 500}});
}

TEST_CASE("the longest rows lie between the mean and the limit", "[grpo]") {
  Grpo grpo;
  grpo.prompts = 64;
  grpo.samples = 8;
  grpo.response_limit = 1024;
  grpo.lengths.mean = 300;
  grpo.pack_rows = 1;
  const std::int64_t one = longest_rows(grpo);
  CHECK(one == grpo.prompt_tokens + grpo.response_limit);
  grpo.pack_rows = 80;
  const double mean = 80 * (static_cast<double>(grpo.prompt_tokens) + mean_response(grpo));
  CHECK(static_cast<double>(longest_rows(grpo)) > mean);
  CHECK(static_cast<double>(longest_rows(grpo)) < 1.4 * mean);
  grpo.lengths.kind = LengthKind::fixed;
  CHECK(longest_rows(grpo) == 80 * (grpo.prompt_tokens + 300));
}

TEST_CASE("equal responses make equal updates, in packs and in shares", "[grpo]") {
  Grpo grpo;
  grpo.pack_length = 1000;
  grpo.mini_batches = 4;
  const std::vector<std::int64_t> lengths(64, 500);
  const Updates packs = updates_of(grpo, lengths, 8);
  grpo.batching = Batching::shares;
  const Updates shares = updates_of(grpo, lengths, 8);
  CHECK(packs.rounds == shares.rounds);
  CHECK(packs.rounds == std::vector<std::vector<double>>(4, {1000}));
}

TEST_CASE("every GPU learns, generates or is counted as stranded", "[grpo]") {
  for (const std::uint32_t tp : {1u, 2u, 4u})
    for (const std::vector<std::int64_t>& list :
         {std::vector<std::int64_t>{1}, {4, 4}, {2, 2, 2, 2}, {4, 4, 4, 4}}) {
      Cluster cluster = load_cluster(source_data(), {.name = "isambard-ai", .nodes = 8});
      Grpo grpo;
      grpo.tensor_parallel = tp;
      grpo.learners = learners_by_node(list, cluster.nodes);
      const Placement placement = place(cluster, grpo);
      const std::size_t engines = placement.engines.size() * tp;
      CHECK(placement.learners.size() + engines + placement.stranded == cluster.ranks());
      for (const Group& engine : placement.engines)
        for (const Rank rank : engine)
          CHECK(place_of(cluster, rank).node == place_of(cluster, engine.front()).node);
    }
  Cluster cluster = load_cluster(source_data(), {.name = "isambard-ai", .nodes = 8});
  Grpo grpo;
  grpo.tensor_parallel = 2;
  grpo.learners = learners_by_node({1}, 8);
  CHECK(place(cluster, grpo).stranded == 8);
  CHECK(learner_cluster(cluster, grpo).ranks() == 8);
  grpo.learners = learners_by_node({4, 4}, 8);
  CHECK(learner_cluster(cluster, grpo).ranks() == 8);
  CHECK(learner_cluster(cluster, grpo).nodes == 2);
}

TEST_CASE("an engine wider than a node has whole nodes", "[grpo]") {
  const Cluster cluster = load_cluster(source_data(), {.name = "isambard-ai", .nodes = 6});
  Grpo grpo;
  grpo.tensor_parallel = 8;
  grpo.learners = {2, 0, 0, 0, 0, 0};
  const Placement placement = place(cluster, grpo);
  CHECK(placement.engines ==
        std::vector<Group>{{4, 5, 6, 7, 8, 9, 10, 11}, {12, 13, 14, 15, 16, 17, 18, 19}});
  CHECK(placement.stranded == 2 + 4);  // beside the learners, and the node that is left over
  grpo.layout = GrpoLayout::colocated;
  CHECK(place(cluster, grpo).engines.size() == 3);
  CHECK(place(cluster, grpo).learners.size() == 24);
}

TEST_CASE("the engine's own all-reduce does not reach another node", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.cluster = load_cluster(source_data(), {.name = "h100-8", .nodes = 2});
  bench.grpo.tensor_parallel = bench.cluster.gpus_per_node();
  const double inside = bench.decode().iteration(1, 0);
  bench.grpo.tensor_parallel *= 2;
  const double apart = bench.decode().iteration(1, 0) - bench.stack.host.nodes.number();
  // Half of the weights on each GPU, but a message over the network twice in every layer.
  const double latency = 2 * static_cast<double>(bench.model.layers) * 10e-6;
  CHECK(apart > inside / 2 + latency);
}

namespace {

// Matrix products of CodeLlama-34B, whose widths Llama-2-34B has: an iteration without what is
// around them.
double products_ms(const GrpoBench& bench, double tokens) {
  const DecodeModel decode = bench.decode();
  const double around =
      bench.stack.host.iteration.value.value + tokens * bench.stack.host.sequence.value.value +
      static_cast<double>(bench.model.layers) * bench.stack.kernels.small.value.value;
  return 1e3 * (decode.iteration(tokens, 0) - around);
}

}  // namespace

TEST_CASE("the products of an iteration are within 15 percent of measured ones", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.cluster = load_cluster(source_data(), {.name = "h100-8"});
  bench.cluster.gpu.gemm.sustained.value = {
      0.9};  // single kernels: clocks do not fall as in a step
  bench.model = load_model(source_data(), "llama-2-34b");
  bench.grpo.tensor_parallel = 1;
  // github.com/microsoft/vidur, H100: tokens and ms of all products.
  for (const auto& [tokens, ms] : {std::pair{1.0, 22.97},
                                   {64, 23.5},
                                   {128, 25.0},
                                   {192, 29.8},
                                   {256, 28.6},
                                   {512, 49.7},
                                   {1024, 106.6},
                                   {2048, 190}}) {
    CAPTURE(tokens, products_ms(bench, tokens));
    CHECK(products_ms(bench, tokens) == Approx(ms).epsilon(0.15));
  }
}

TEST_CASE("an iteration is bound by weights, then by arithmetic, and grows with the context",
          "[grpo]") {
  const GrpoBench bench = grpo_bench();
  const DecodeModel decode = bench.decode();
  CHECK(decode.iteration(8, 0) < 1.1 * decode.iteration(1, 0));
  CHECK(decode.iteration(4096, 0) > 1.9 * decode.iteration(2048, 0));
  const double step = decode.iteration(8, 20000) - decode.iteration(8, 10000);
  CHECK(decode.iteration(8, 30000) - decode.iteration(8, 20000) == Approx(step));
  CHECK(decode.bytes_per_token() == 262144);  // 2 x 64 layers x 8 heads x 128 x 2 bytes
}

TEST_CASE("an engine caches one latent vector a token, whole on every GPU", "[grpo]") {
  GrpoBench bench = grpo_bench();
  Model& model = bench.model;
  model = {};
  model.name = "latent";
  model.layers = 2;
  model.hidden = 1024;
  model.vocabulary = 4000;
  model.attention.heads = model.attention.kv_heads = 8;
  model.attention.head_dim = 192;
  model.attention.latent = Latent{.width = 512, .query_width = 768, .rotary = 64, .value = 128};
  model.feed_forward.width = 2048;
  const double h = 1024, heads = 8, narrow = 768 + 512 + 64, norms = 2 * h + 768 + 512;
  const double whole = h * narrow;
  const double divided =
      768 * heads * 192 + 512 * heads * (128 + 128) + heads * 128 * h + 3 * h * 2048;
  for (const std::uint32_t gpus : {1U, 2U}) {
    CAPTURE(gpus);
    bench.grpo.tensor_parallel = gpus;
    const DecodeModel decode = bench.decode();
    CHECK(decode.bytes_per_token() == 2 * (512 + 64) * 2);  // layers, numbers, bytes
    CHECK(decode.weight_bytes() ==
          Approx(2 * (2 * whole + (2 * (divided + norms) + h + 2 * 4000 * h) / gpus)));
    // Every head looks at the same vectors: on two GPUs each still reads all of them.
    const double read = 2 * (512 + 64) * 2 / bench.cluster.gpu.memory.stream.value.value /
                        bench.stack.kernels.cache.value.value;
    const double multiplied = 2 * 2 * heads * (512 + 64 + 512) / gpus /
                              bench.cluster.gpu.attention.flash.forward.value.value;
    CHECK(decode.per_cached(8, 1000) == Approx(std::max(read, multiplied)));
    // Prompts are attended to with keys and values of their own.
    const double pair =
        2 * heads * (192 + 128) / gpus / bench.cluster.gpu.attention.later->forward.number();
    const double prompt = decode.step({.prompt = 1, .pairs = 1e6}) - decode.step({.prompt = 1});
    CHECK(prompt == Approx(1e6 * pair));
  }
  // With so many heads the products outlast the reading.
  model.attention.heads = model.attention.kv_heads = 512;
  bench.grpo.tensor_parallel = 1;
  CHECK(bench.decode().per_cached(8, 1000) ==
        Approx(2 * 2 * 512.0 * (512 + 64 + 512) /
               bench.cluster.gpu.attention.flash.forward.value.value));
}

TEST_CASE("a 32B model starts on one 96 GB GPU only with most of its memory", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.grpo.tensor_parallel = 1;
  bench.grpo.memory_utilization = 0.55;
  CHECK(bench.decode().capacity() == 0);
  bench.grpo.memory_utilization = 0.85;
  const double one = bench.decode().capacity();
  CHECK(one == Approx(86e3).epsilon(0.02));
  bench.grpo.tensor_parallel = 2;
  CHECK(bench.decode().capacity() == Approx(415e3).epsilon(0.02));
  CHECK(bench.decode().capacity() > 2 * one);
}

TEST_CASE("an engine keeps free what its largest step takes", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.model = load_model(source_data(), "llama-3.1-8b");
  bench.grpo.tensor_parallel = 1;
  const auto kept = [&](std::int64_t tokens, std::int64_t sequences) {
    bench.grpo.batched_tokens = tokens;
    bench.grpo.batched_sequences = sequences;
    return bench.cluster.gpu.memory.capacity.number() * bench.grpo.memory_utilization -
           bench.decode().weight_bytes() - bench.decode().cache_bytes();
  };
  constexpr double gib = 1024.0 * 1024 * 1024;
  // As vLLM's logs say: 0.22 GiB for 2048 tokens of few sequences, 1.19 to 1.26 for 256 sequences
  // whose logits are sorted, on one GPU and on two.
  const double process = bench.stack.memory.overhead.number();
  CHECK((kept(2048, 16) - process) / gib == Approx(0.22).epsilon(0.1));
  bench.stack.memory.logits.value = {39};
  const double sorted = kept(8192, 256);
  CHECK((sorted - process) / gib == Approx(1.25).epsilon(0.05));
  bench.grpo.tensor_parallel = 2;
  CHECK(kept(8192, 256) == Approx(sorted + bench.stack.memory.communication.number()));
  // Nobody samples more sequences than there are tokens.
  CHECK(kept(64, 1024) == kept(64, 64));
  bench.stack.memory.profiled = false;
  CHECK(kept(8192, 1024) == Approx(process));
}

// verl's examples of adapters, which run: 0.1 and 0.2 of an H100, 512 sequences, 1536 tokens a
// step.
TEST_CASE("engines of small shares start where steps are small", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.cluster = load_cluster(source_data(), {.name = "h100-8"});
  bench.grpo.tensor_parallel = 1;
  bench.grpo.batched_tokens = 1536;
  bench.grpo.batched_sequences = 512;
  for (const auto& [model, share] : {std::pair{"qwen2.5-3b", 0.1}, {"qwen2.5-7b", 0.2}}) {
    bench.model = load_model(source_data(), model);
    bench.grpo.memory_utilization = share;
    CHECK(bench.decode().capacity() > 1536);
  }
}

TEST_CASE("a share of what weights leave is more cache than what a share of all leaves", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.grpo.tensor_parallel = 1;
  bench.grpo.memory_utilization = 1;
  const double all = bench.decode().capacity();
  bench.grpo.memory_utilization = 0.9;
  CHECK(bench.decode().capacity() < 0.75 * all);
  bench.stack.memory.of_free = true;
  CHECK(bench.decode().capacity() == Approx(0.9 * all).epsilon(1e-3));
}

TEST_CASE("eager engines are bound by their host thread", "[grpo]") {
  GrpoBench bench = grpo_bench();
  bench.model = load_model(source_data(), "qwen2.5-0.5b");
  bench.grpo.tensor_parallel = 1;
  const double graphs = bench.decode().iteration(1, 0);
  bench.grpo.enforce_eager = true;
  CHECK(bench.decode().iteration(1, 0) > 2 * graphs);
}
