// Layers that do not attend: what they hold, what they multiply, and how they grow.
#include "workloads/model/mixers.hpp"

#include <algorithm>

#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/layers/units.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/step/model_flops.hpp"

using namespace stepsim;

namespace {

Model catalogued(const std::string& name) {
  return load_model(source_data(), name);
}

std::vector<Unit> units_of(const TinyStep& step, std::int64_t layer) {
  return layer_units(step.model, step.stack, step.strategy, load_of(step.model, step.job, layer),
                     layer);
}

double forward_flops(const std::vector<Unit>& units) {
  double sum = 0;
  for (const Unit& unit : units) sum += static_cast<double>(unit.times) * flops_of(unit.forward);
  return sum;
}

// Of the block in which tokens hear of each other.
double forward_time(const TinyStep& step, std::int64_t layer) {
  double sum = 0;
  for (const Unit& unit : units_of(step, layer))
    if (in_mixer(unit.role) || in_attention(unit.role))
      sum += device_time(step.cluster.gpu, step.stack, unit.forward, false).value;
  return sum;
}

TinyStep step_of(const std::string& name, std::int64_t sequence) {
  TinyStep step = tiny_step(Sharding::zero3, catalogued(name));
  step.job.sequence = sequence;
  step.job.micro_batch = 1;
  return step;
}

const Unit& unit_of(const std::vector<Unit>& units, Role role) {
  for (const Unit& unit : units)
    if (unit.role == role) return unit;
  throw std::logic_error("no such unit");
}

}  // namespace

TEST_CASE("totals of models with other mixers than attention", "[workloads]") {
  struct Published {
    const char* name;
    std::int64_t elements, attends;
  };
  // LFM2: the publisher's table. Jamba, Nemotron, DeepSeek V2, Kimi: sizes of the checkpoints.
  // Granite, Qwen3-Next and 3.5: the configuration's classes, checked by hand in the file's
  // comment.
  const auto model = GENERATE(
      Published{"lfm2-350m", 354483968, 6}, Published{"lfm2-700m", 742489344, 6},
      Published{"lfm2-1.2b", 1170340608, 6}, Published{"lfm2-2.6b", 2569272320, 8},
      Published{"lfm2-8b-a1b", 8339929856, 6}, Published{"granite-4.0-350m", 352379904, 28},
      Published{"granite-4.0-h-tiny", 6939037248, 4},
      Published{"granite-4.0-h-small", 32207337984, 4}, Published{"jamba-v0.1", 51570323328, 4},
      Published{"nemotron-nano-9b-v2", 8888227328, 4},
      Published{"qwen3-next-80b-a3b", 79674391296, 12}, Published{"qwen3.5-9b", 8953803264, 8},
      Published{"qwen3.5-27b", 26895998464, 16}, Published{"qwen3.5-35b-a3b", 34660610688, 10});
  CAPTURE(model.name);
  const Model read = catalogued(model.name);
  CHECK(count_parameters(read).total() == model.elements);
  CHECK(attention_layers(read) == model.attends);
}

// What a token meets: 1.5 of LFM2's 8.3, 1 of 7 and 9 of 32 in Granite, 12 of 52 in Jamba, 3 of 80
// in Qwen3-Next, as their publishers round.
TEST_CASE("parameters that a token meets are those that the publishers name", "[workloads]") {
  struct Active {
    const char* name;
    double low, high;
  };
  const auto model =
      GENERATE(Active{"lfm2-8b-a1b", 1.5e9, 1.6e9}, Active{"granite-4.0-h-tiny", 0.9e9, 1.5e9},
               Active{"granite-4.0-h-small", 8.5e9, 9.5e9}, Active{"jamba-v0.1", 11.5e9, 12.5e9},
               Active{"deepseek-v2-lite", 2.4e9, 2.7e9}, Active{"deepseek-v2", 20.5e9, 21.5e9},
               Active{"kimi-k2", 32e9, 33e9}, Active{"nemotron-3-nano-30b-a3b", 3.2e9, 3.7e9},
               Active{"qwen3-next-80b-a3b", 3e9, 4e9});
  CAPTURE(model.name);
  const auto active = static_cast<double>(active_parameters(catalogued(model.name)));
  CHECK(active >= model.low);
  CHECK(active <= model.high);
}

TEST_CASE("a short convolution multiplies each token with its matrices and three taps",
          "[workloads]") {
  const TinyStep step = step_of("lfm2-1.2b", 1024);
  const double h = 2048, width = 8192, taps = 3;
  CHECK(kind_of(step.model, 0).mixes == LayerKind::Mixes::mixer);
  CHECK_THAT(forward_flops(units_of(step, 0)),
             exactly(2 * 1024 * (4 * h * h + taps * h + 3 * h * width)));
}

TEST_CASE("Mamba-2 multiplies chunks, for heads and for groups", "[workloads]") {
  const TinyStep step = step_of("granite-4.0-h-micro", 1024);
  // 64 heads of 64, one group, states of 128, chunks of 256: with all of the chunk for the group,
  // with half of it for each channel, and into the state and out of it.
  const double group = 2.0 * 256 * 128, chunk = 256.0 * 4096, state = 2.0 * 4096 * 128;
  const Mixer& mixer = *step.model.mixer;
  CHECK_THAT(mixer_flops(mixer).forward, exactly(group + chunk + 2 * state));
  CHECK_THAT(flops_of(unit_of(units_of(step, 0), Role::mix).forward),
             exactly(1024 * (group + chunk + 2 * state)));
  CHECK(mixer_flops(mixer).backward > 2 * mixer_flops(mixer).forward);
}

TEST_CASE("a gated delta net solves its chunks and carries a state", "[workloads]") {
  const TinyStep step = step_of("qwen3-next-80b-a3b", 1024);
  // 32 heads, keys and values of 128, chunks of 64.
  const double in_chunk = 2.0 * 64 * 32 * 128, in_state = 2.0 * 32 * 128 * 128;
  CHECK_THAT(mixer_flops(*step.model.mixer).forward, exactly(5 * in_chunk + 3 * in_state));
}

TEST_CASE("ranks that share a mixer have whole heads, and hand over its input and its result",
          "[workloads]") {
  for (const char* name : {"nemotron-3-nano-30b-a3b", "qwen3-next-80b-a3b", "qwen3.5-9b"}) {
    CAPTURE(name);
    TinyStep alone = step_of(name, 1024);
    alone.strategy.sharding = Sharding::zero1;
    TinyStep shared = alone;
    constexpr std::int64_t ranks = 4;
    shared.strategy.tensor_parallel = {ranks, true};
    const std::vector<Unit> all = units_of(alone.input()).layers.front(),
                            mine = units_of(shared.input()).layers.front();
    REQUIRE(all.size() == mine.size());
    double arrived = 0, left = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      for (const Transfer& transfer : mine[i].hand.arrive) arrived += transfer.bytes;
      for (const Transfer& transfer : mine[i].hand.leave) left += transfer.bytes;
      if (!in_mixer(mine[i].role)) continue;
      CAPTURE(mine[i].name);
      CHECK_THAT(ranks * flops_of(mine[i].forward), exactly(flops_of(all[i].forward)));
      CHECK_THAT(ranks * flops_of(mine[i].backward), exactly(flops_of(all[i].backward)));
      const bool of_a_head = mine[i].elements() == static_cast<double>(alone.model.mixer->width);
      if (!of_a_head) CHECK_THAT(ranks * mine[i].elements(), exactly(all[i].elements()));
    }
    // Of a layer that is a mixer alone; the other one has a block behind it as well.
    const double blocks = kind_of(alone.model, 0).follows == LayerKind::Follows::nothing ? 1 : 2;
    const double tokens = 2.0 * 1024 * static_cast<double>(alone.model.hidden);
    CHECK_THAT(arrived, exactly(blocks * tokens));
    CHECK_THAT(left, exactly(blocks * tokens));
  }
}

TEST_CASE("layers with a state grow with the length of a row, attention with its square",
          "[workloads]") {
  const auto growth = [](const char* name, std::int64_t layer) {
    return forward_time(step_of(name, 1 << 17), layer) /
           forward_time(step_of(name, 1 << 15), layer);
  };
  for (const char* name : {"lfm2-1.2b", "jamba-v0.1", "granite-4.0-h-micro", "nemotron-nano-9b-v2",
                           "qwen3-next-80b-a3b"}) {
    CAPTURE(name);
    REQUIRE(kind_of(catalogued(name), 0).mixes == LayerKind::Mixes::mixer);
    CHECK(growth(name, 0) < 4.01);
    CHECK(growth(name, 0) > 3.9);
  }
  CHECK(growth("lfm2-1.2b", 2) > 8);
  const auto core = [](std::int64_t sequence) {
    return flops_of(
        unit_of(units_of(step_of("granite-4.0-h-micro", sequence), 5), Role::attend).forward);
  };
  CHECK_THAT(core(1 << 17) / core(1 << 15), WithinRel(16, 1e-3));
}

TEST_CASE("a step's own work counts attention where layers attend", "[workloads]") {
  const TinyStep step = step_of("lfm2-1.2b", 1024);
  const double pairs = 1024.0 * 1025 / 2;
  const ModelFlops flops = model_flops(step.input());
  CHECK_THAT(flops.attention, exactly(6 * 3 * 4 * 2048 * pairs));
}

TEST_CASE(
    "what layers with a state keep is finite, grows with tokens, and full recomputation "
    "keeps none of it",
    "[workloads]") {
  for (const char* name : {"lfm2-1.2b", "jamba-v0.1", "granite-4.0-h-micro", "nemotron-nano-9b-v2",
                           "qwen3-next-80b-a3b"}) {
    CAPTURE(name);
    const auto saved = [&](std::int64_t sequence) {
      double sum = 0;
      for (const Unit& unit : units_of(step_of(name, sequence), 0))
        if (in_mixer(unit.role)) sum += unit.memory.saved;
      return sum;
    };
    CHECK(saved(1024) > 0);
    CHECK_THAT(saved(4096) / saved(1024), WithinRel(4, 1e-6));
  }
  // The fused kernel of Mamba-2 keeps what comes in and its own result, 16 bits each.
  const std::vector<Unit> units = units_of(step_of("granite-4.0-h-micro", 1024), 0);
  CHECK_THAT(unit_of(units, Role::convolution).memory.saved, exactly(2.0 * 1024 * 8512));
  CHECK_THAT(unit_of(units, Role::mix).memory.saved, exactly(2.0 * 1024 * 4096));
  CHECK(unit_of(units, Role::mixer_out).memory.saved == 0);
}

TEST_CASE("adapters stand beside the matrices of a mixer, and not beside its taps", "[workloads]") {
  TinyStep step = step_of("lfm2-1.2b", 1024);
  step.strategy.lora.rank = 8;
  step.strategy.lora.targets = LoraTargets::linear;
  std::int64_t adapters = 0;
  for (const Unit& unit : units_of(step, 0))
    if (unit.adapter && in_mixer(unit.role)) ++adapters;
  CHECK(adapters == 2);
}

TEST_CASE("Gemma has four norms a layer, and bounds its logits", "[workloads]") {
  const Model gemma = catalogued("gemma-2-2b");
  std::int64_t norms = 0;
  for (const Part& part : layer_parts(gemma, 0)) norms += part.kind == TensorClass::norm ? 1 : 0;
  CHECK(norms == 4);
  CHECK(window_of(gemma, 0) == 4096);
  CHECK(window_of(gemma, 1) == 0);
  CHECK(window_of(catalogued("gemma-3-4b"), 5) == 0);
  CHECK(window_of(catalogued("gemma-3-4b"), 6) == 1024);
  const TinyStep step = step_of("gemma-2-2b", 1024);
  Model free = step.model;
  free.caps_logits = false;
  const auto bytes = [&](const Model& model) {
    double sum = 0;
    for (const Unit& unit : head_units(model, step.stack, step.strategy, step.job))
      for (const KernelRow& row : unit.forward) sum += row.bytes;
    return sum;
  };
  CHECK_THAT(bytes(step.model) - bytes(free), WithinRel(12.0 * 1024 * 256000, 1e-9));
}

TEST_CASE("a mixer beside attention costs what both cost, with one norm", "[workloads]") {
  const TinyStep both = step_of("falcon-h1-0.5b", 4096);
  const auto with = [&](LayerKind::Mixes mixes) {
    TinyStep step = step_of("falcon-h1-0.5b", 4096);
    for (LayerKind& kind : step.model.kinds) kind.mixes = mixes;
    return forward_time(step, 0);
  };
  CHECK(forward_time(both, 0) ==
        Approx(with(LayerKind::Mixes::attention) + with(LayerKind::Mixes::mixer)));
  const std::vector<Unit> units = units_of(both, 0);
  CHECK(std::ranges::count_if(
            units, [](const Unit& unit) { return unit.role == Role::attention_norm; }) == 1);
}

TEST_CASE("an indexer scores all pairs, and nothing of it runs backward", "[workloads]") {
  const auto scores = [](std::int64_t sequence) {
    const std::vector<Unit> units = units_of(step_of("deepseek-v3.2", sequence), 0);
    for (const Unit& unit : units)
      if (unit.role == Role::index_query || unit.role == Role::index_scores)
        CHECK(unit.backward.empty());
    return flops_of(unit_of(units, Role::index_scores).forward);
  };
  CHECK(scores(8192) == Approx(4 * scores(4096)).epsilon(0.01));
}
