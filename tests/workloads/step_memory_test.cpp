// What a training step holds in device memory.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <typeindex>

#include "analysis/memory_timeline.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"
#include "workloads/sharding/schemes.hpp"

using namespace stepsim;

namespace {

constexpr double half = 2;  // bytes of a 16-bit number

struct Extremes {
  double lowest = 0, highest = 0, last = 0, moved = 0;
};

// Per tensor class over the replayed step, on every lane.
std::map<std::pair<Rank, std::string>, Extremes> extremes_of(const Replayed& replayed) {
  const OpGraph& graph = replayed.program.graph;
  std::vector<std::pair<double, const MemoryEffect*>> changes;
  for (const MemoryEffect& effect : graph.memory())
    changes.emplace_back(effect.at_start ? replayed.trace.start[index(effect.op)]
                                         : replayed.trace.finish[index(effect.op)],
                         &effect);
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, -a.second->bytes) < std::pair(b.first, -b.second->bytes);
  });
  std::map<std::pair<Rank, std::string>, Extremes> result;
  for (const auto& [time, effect] : changes) {
    Extremes& e = result[{effect->rank, graph.names()[index(effect->tensor_class)]}];
    e.last += effect->bytes;
    e.lowest = std::min(e.lowest, e.last);
    e.highest = std::max(e.highest, e.last);
    e.moved += std::abs(effect->bytes);
  }
  return result;
}

double highest(const TinyStep& step, const std::string& tensor_class) {
  return numbers_from_worker([&] {
           const auto all = extremes_of(play(step));
           const auto found = all.find({0, tensor_class});
           return std::vector<double>{found == all.end() ? 0 : found->second.highest};
         })
      .front();
}

double peak_of(const TinyStep& step) {
  return numbers_from_worker([&] {
           const Replayed replayed = play(step);
           return std::vector<double>{peak_memory(replayed.program.graph, replayed.trace, 0).bytes};
         })
      .front();
}

double resident(const TinyStep& step) {
  return build_step(step.input(), Folding::automatic).resident.in(Pool::device);
}

}  // namespace

TEST_CASE("a program written for its memory alone holds what the whole one does", "[workloads]") {
  for (const Variant& variant : tiny_variants(2, 4)) {
    CAPTURE(variant.name);
    const StepInput input = variant.step.input();
    const OpGraph whole = build_step(input, Folding::automatic).graph;
    const OpGraph bare = build_step(input, Folding::automatic, Written::memory).graph;
    const Timeline expected = timeline_in_order(whole, 0), found = timeline_in_order(bare, 0);
    REQUIRE(!expected.empty());
    REQUIRE(found.size() == expected.size());
    CHECK(std::equal(found.begin(), found.end(), expected.begin(),
                     [](const MemoryChange& a, const MemoryChange& b) {
                       return a.time == b.time && a.pool == b.pool && a.moment == b.moment &&
                              a.at == b.at && a.tensor_class == b.tensor_class &&
                              a.bytes == b.bytes;
                     }));
  }
}

TEST_CASE("a program written for its sums alone adds up to what the whole one does",
          "[workloads]") {
  for (const Variant& variant : tiny_variants(2, 4)) {
    CAPTURE(variant.name);
    const StepInput input = variant.step.input();
    const OpGraph whole = build_step(input, Folding::automatic).graph;
    const OpGraph bare = build_step(input, Folding::automatic, Written::sums).graph;
    CHECK(bare.ops().empty());
    CHECK(bare.size() == whole.size());
    const OpSums expected = whole.sums(), found = bare.sums();
    REQUIRE(found.traffic.size() == expected.traffic.size());
    for (std::size_t cause = 0; cause < cause_count; ++cause) {
      CHECK_THAT(found.seconds[cause], exactly(expected.seconds[cause]));
      for (std::size_t pattern = 0; pattern < found.traffic.size(); ++pattern) {
        CHECK(found.traffic[pattern][cause].uses == expected.traffic[pattern][cause].uses);
        CHECK_THAT(found.traffic[pattern][cause].bytes,
                   exactly(expected.traffic[pattern][cause].bytes));
      }
    }
  }
}

TEST_CASE("memory is never negative and ends where it began, class by class", "[workloads]") {
  for (const Variant& variant : tiny_variants(2, 4)) {
    CAPTURE(variant.name);
    const std::vector<double> worst = numbers_from_worker([&] {
      double below = 0, left = 0, classes = 0;
      for (const auto& [key, e] : extremes_of(play(variant.step))) {
        below = std::min(below, e.lowest / e.moved);
        left = std::max(left, std::abs(e.last) / e.moved);
        ++classes;
      }
      return std::vector<double>{below, left, classes};
    });
    CHECK(worst[0] >= -1e-12);
    CHECK(worst[1] <= 1e-12);
    CHECK(worst[2] > 0);
  }
}

TEST_CASE("accumulating more gradients does not change the peak", "[workloads]") {
  const auto sharding =
      GENERATE(Sharding::zero0, Sharding::zero1, Sharding::zero2, Sharding::zero3, Sharding::fsdp);
  CAPTURE(sharding_names[static_cast<std::size_t>(sharding)]);
  TinyStep step = tiny_step(sharding);
  const double once = peak_of(step), held = resident(step);
  step.job.accumulation = 2;
  const double twice = peak_of(step);
  // From the second micro-batch on the gradients of the first are there from the start; stage 1
  // keeps them whole until the boundary instead of reducing as they come.
  const bool waits = sharding != Sharding::zero3;
  if (!waits) CHECK_THAT(twice, exactly(once));
  CHECK(twice >= once * (1 - 1e-12));
  step.job.accumulation = 4;
  CHECK_THAT(peak_of(step), exactly(twice));
  CHECK_THAT(resident(step), exactly(held));
}

TEST_CASE(
    "gradients wait for the update: all at stage 0, a shard at stage 2, at stage 1 as soon "
    "as they are reduced",
    "[workloads]") {
  const double all = elements_of(tiny_step(Sharding::zero2)).total, n = 8;
  // On top of what waits comes one unit's, until it is in its bucket.
  const double largest = half * 2000 * 64;
  const auto waiting = [&](TinyStep step, double bytes) {
    CHECK(highest(step, "gradients") >= bytes * (1 - 1e-12));
    CHECK(highest(step, "gradients") <= bytes + largest);
  };
  waiting(tiny_step(Sharding::zero0), half * all);
  waiting(tiny_step(Sharding::zero1), half * all / n);
  waiting(tiny_step(Sharding::zero2), half * all / n);
  CHECK_THAT(highest(tiny_step(Sharding::fsdp), "own_gradients"), exactly(4 * all / n));
  TinyStep step = tiny_step(Sharding::zero1);
  step.job.accumulation = 2;
  waiting(step, half * all);
  step = tiny_step(Sharding::zero2);
  step.strategy.gradients = GradientType::fp32;
  waiting(step, 4 * all / n);
  step = tiny_step(Sharding::zero1);  // one buffer of the whole model instead
  step.strategy.gradients = GradientType::fp32;
  CHECK_THAT(resident(step) - resident(tiny_step(Sharding::zero1)), exactly(4 * all));
}

TEST_CASE("checkpointing keeps a layer's input per layer and one layer's activations",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  const double input = half * step.job.slots() * static_cast<double>(step.model.hidden);
  const double layers = static_cast<double>(step.model.layers);
  double saved = 0, head = 0;
  for (const Unit& unit :
       layer_units(step.model, step.stack, step.strategy, load_of(step.model, step.job, 0), 0))
    saved += unit.memory.saved;
  for (const Unit& unit : head_units(step.model, step.stack, step.strategy, step.job))
    head += unit.memory.saved;
  REQUIRE(saved > 0);
  CHECK_THAT(highest(step, "checkpoints"), exactly(layers * input));
  CHECK_THAT(highest(step, "activations"), exactly(std::max(saved, head)));
  step.strategy.checkpointing = Checkpointing::none;
  CHECK(highest(step, "checkpoints") == 0);
  CHECK_THAT(highest(step, "activations"), exactly(layers * saved + head));
}

TEST_CASE("what stays on a rank is 16-bit parameters and the optimizer's shard", "[workloads]") {
  const double state = 4 + 8, n = 8;
  const double all = elements_of(tiny_step(Sharding::zero3)).total;
  CHECK_THAT(resident(tiny_step(Sharding::zero0)), exactly(all * (half + state)));
  CHECK_THAT(resident(tiny_step(Sharding::zero1)), exactly(all * half + all / n * state));
  CHECK_THAT(resident(tiny_step(Sharding::zero2)), exactly(all * half + all / n * state));
  // Sharded parameters are the fp32 copy themselves; gradients are not there between steps.
  CHECK_THAT(resident(tiny_step(Sharding::fsdp)), exactly(all / n * (4 + 8)));
  TinyStep bare = tiny_step(Sharding::zero0);  // moments in 16 bits, too
  bare.strategy.master_weights = false;
  // And PyTorch's buckets, which are as large as the gradients.
  CHECK_THAT(resident(bare), exactly(all * (half + half + half + half)));
  // Stage 3 has one buffer for its gradients from the start, keeps its bucket for the whole run,
  // and what is persistent gathered.
  const TinyStep three = tiny_step(Sharding::zero3);
  CHECK_THAT(resident(three),
             exactly(all / n * (half + half + state) + half * three.strategy.zero.reduce_bucket +
                     half * elements_of(three).small));
  TinyStep wide = three;
  wide.strategy.gradients = GradientType::fp32;
  CHECK_THAT(resident(wide) - resident(three), exactly(all / n * half));
}

TEST_CASE("under every scheme what is set up is what the step begins with, in every pool",
          "[workloads]") {
  std::vector<Variant> variants = tiny_variants(2, 4);
  for (const Sharding sharding : {Sharding::zero3, Sharding::fsdp}) {
    variants.push_back({"whole on each device first", tiny_step(sharding)});
    variants.back().step.strategy.load = Loading::replica;
  }
  for (std::size_t sharding = 0; sharding < sharding_names.size(); ++sharding) {
    variants.push_back({"adapters", tiny_step(Sharding{static_cast<std::uint8_t>(sharding)})});
    variants.back().step.strategy.lora = {.rank = 4};
  }
  variants.push_back({"gradients in 32 bits", tiny_step(Sharding::zero1)});
  variants.back().step.strategy.gradients = GradientType::fp32;
  variants.push_back({"distributed optimizer", tiny_step(Sharding::zero1)});
  variants.back().step.strategy.distributed.used = true;
  std::set<std::type_index> schemes;
  for (const Variant& variant : variants) {
    CAPTURE(variant.name);
    const RankPart rank = variant.step.rank();
    schemes.insert(
        with_scheme(rank.input.strategy, []<Scheme S>() { return std::type_index(typeid(S)); }));
    std::map<std::pair<Pool, Held>, double> left, lowest, moved;
    for (const SetupChange& change : setup_of(rank)) {
      const std::pair key{change.pool, change.held};
      lowest[key] = std::min(lowest[key], left[key] += change.bytes);
      moved[key] += std::abs(change.bytes);
    }
    for (const auto& [key, bytes] : lowest) CHECK(bytes >= -1e-12 * moved[key]);
    for (const Holding& holding : resident_of(rank).holdings) {
      CAPTURE(to_text(holding.held));
      const std::pair key{holding.pool, holding.held};
      CHECK_THAT(left[key], exactly(holding.bytes));
      left[key] = 0;
    }
    for (const auto& [key, bytes] : left) {
      CAPTURE(to_text(key.second));
      CHECK(std::abs(bytes) <= 1e-12 * moved[key]);
    }
  }
  CHECK(schemes.size() == scheme_count);
}

TEST_CASE("products that add to the buffer leave a tensor for each shape", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero1);
  step.strategy.distributed.used = true;
  step.strategy.gradients = GradientType::fp32;
  const double before = resident(step);
  step.stack.gradient_placeholders = true;
  // Queries with keys and values, what comes out of attention, gate with up, down: of one layer.
  const double h = 64, q = 64, kv = 32, w = 192;
  const double shapes = h * (q + 2 * kv) + q * h + 2 * h * w + w * h;
  CHECK_THAT(resident(step) - before, exactly(half * shapes));
  step.model.layers *= 2;
  const double more = resident(step);
  step.stack.gradient_placeholders = false;
  CHECK_THAT(more - resident(step), exactly(half * shapes));
  // Table and head have gradients of their own, one after the other, until these are added.
  CHECK_THAT(highest(step, "gradients"),
             exactly(half * static_cast<double>(step.model.vocabulary * step.model.hidden)));
}

TEST_CASE("experts exchanged hold the same optimizer shard and fewer parameters", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2, tiny_model(8));
  step.strategy.experts.kernel = MoeKernel::tutel;
  const Elements e = elements_of(step);
  const double whole = resident(step);
  step.strategy.experts.parallel = 4;
  CHECK_THAT(whole - resident(step), exactly(half * e.experts * (1 - 1.0 / 4)));
}

TEST_CASE("a reference model is a copy under stage 2 and a shard under stage 3", "[workloads]") {
  for (const Sharding sharding : {Sharding::zero2, Sharding::zero3}) {
    TinyStep step = tiny_step(sharding);
    const Elements e = elements_of(step);
    step.job.method = Method::dpo;
    const double with = resident(step);
    step.job.reference_model = false;
    const double share = sharding == Sharding::zero2 ? 1 : 1.0 / 8;
    const double kept = sharding == Sharding::zero2 ? 0 : half * e.small;
    CHECK_THAT(with - resident(step), exactly(half * e.total * share + kept));
  }
}

TEST_CASE("stage 3 never holds all parameters when it keeps and fetches nothing ahead",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero3);
  step.strategy.zero.max_reuse = step.strategy.zero.prefetch_bucket = 0;
  const double table = half * static_cast<double>(step.model.vocabulary * step.model.hidden);
  // The largest single tensor is a table; the host may run two fetches ahead of the device.
  const double largest =
      half * static_cast<double>(step.model.hidden * step.model.feed_forward.width);
  CHECK(highest(step, "gathered") >= table);
  CHECK(highest(step, "gathered") <= 2 * table + 3 * largest);
}

TEST_CASE("a coalesced gather holds its tensors twice only while they are cut out of it",
          "[workloads]") {
  // Everything is fetched and kept: at the end of forward each tensor is there once, and once more
  // what the last module took out of its gather.
  TinyStep step = tiny_step(Sharding::zero3);
  const Elements e = elements_of(step);
  CHECK(highest(step, "gathered") >= half * (e.inner + e.outer));
  CHECK(highest(step, "gathered") < half * 1.5 * (e.inner + e.outer));
}

TEST_CASE("sharded groups are live two at a time, one of them twice while it is cut up",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.model.layers = 8;
  step.model.vocabulary = 10;
  const double layer = half * elements_of(step).inner / 8;
  // Norms are below no threshold here: they travel with their layer.
  const double norms = half * 2 * static_cast<double>(step.model.hidden);
  CHECK(highest(step, "gathered") <= (layer + norms) * 3 * (1 + 1e-9));
}

TEST_CASE("stages 1 and 2 hold their buckets while gradients come, twice when they overlap",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  const double bucket = half * step.strategy.zero.reduce_bucket;
  // One bucket, and the copy that is reduced: the largest tensor goes by itself.
  const double largest = half * static_cast<double>(step.model.vocabulary * step.model.hidden);
  REQUIRE(largest > bucket);
  CHECK(highest(step, "bucket") == bucket);
  // What fills a bucket before it may be there at the very instant when the large one comes.
  CHECK(highest(step, "reduce_input") >= largest);
  CHECK(highest(step, "reduce_input") <= bucket + largest);
  step.strategy.zero.overlap_comm = true;
  CHECK(highest(step, "bucket") == 2 * bucket);
  CHECK(highest(step, "reduce_input") >= largest);
  CHECK(highest(step, "reduce_input") <= bucket + largest);
}

TEST_CASE("one GPU without sharding has nobody to reduce with, and no bucket", "[workloads]") {
  TinyStep alone = tiny_step(Sharding::zero0, tiny_model(), 1, 1);
  alone.strategy.master_weights = false;
  CHECK(highest(alone, "bucket") == 0);
  CHECK(highest(alone, "reduce_input") == 0);
}

TEST_CASE("the update needs the flat gradient in fp32, at stage 2 beside its 16 bits",
          "[workloads]") {
  const double all = elements_of(tiny_step(Sharding::zero2)).total, n = 8;
  const auto needed = [](TinyStep step) {
    return highest(step, "flat_gradient") + highest(step, "fp32_gradient");
  };
  // One parameter group after the other: norms do not decay, and come for themselves.
  const double norms =
      static_cast<double>(count_parameters(tiny_step(Sharding::zero2).model).of(TensorClass::norm));
  CHECK(needed(tiny_step(Sharding::zero0)) == 0);
  // That of the next group is asked for at the instant when the one before is given up.
  const double next = 4 * norms / n;
  CHECK_THAT(needed(tiny_step(Sharding::zero1)), exactly(4 * (all - norms) / n + next));
  CHECK_THAT(needed(tiny_step(Sharding::zero2)), exactly((4 + half) * (all - norms) / n + next));
  TinyStep wide = tiny_step(Sharding::zero2);  // nothing to cast
  wide.strategy.gradients = GradientType::fp32;
  CHECK_THAT(needed(wide), exactly(4 * (all - norms) / n + next));
  TinyStep parts = tiny_step(Sharding::zero3);
  parts.strategy.zero.sub_group = all / n / 4;
  CHECK_THAT(needed(parts), exactly((4 + half) * all / n / 4));
}

TEST_CASE("hooks of the first FSDP hold what frozen layers were given until the pass is over",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.strategy.lora = {4, LoraTargets::linear};
  step.strategy.fsdp.version = 1;
  step.strategy.fsdp.adapter_units = true;
  step.strategy.checkpointing = Checkpointing::full;
  step.strategy.reentrant = false;
  const double given_up = highest(step, "activation_gradients");
  step.strategy.reentrant = true;
  const double inputs = static_cast<double>(step.model.layers) * half * step.job.slots() *
                        static_cast<double>(step.model.hidden);
  const double held = highest(step, "activation_gradients");
  CHECK(held > given_up);
  CHECK(held >= inputs);
  step.strategy.fsdp.adapter_units = false;  // all has gradients, and other hooks
  CHECK(highest(step, "activation_gradients") < held);
}
