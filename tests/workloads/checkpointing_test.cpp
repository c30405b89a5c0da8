// What is kept for the backward pass and what is computed again, counted by hand.
#include "workloads/layers/checkpointing.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/memory_timeline.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/program/run_visit.hpp"
#include "workloads/program/visits.hpp"

using namespace stepsim;

namespace {

// Of the tiny model, for 128 tokens: bytes of one value per token, and its widths.
constexpr double value = 2 * 128, h = 64, q = 64, kv = 32, w = 192, t = 128, heads = 4;

struct Sums {
  double kept = 0, inputs = 0, flops = 0, launches = 0, operators = 0, forward_flops = 0;
};
Sums of_layers(TinyStep step, Checkpointing way, double every = 1) {
  step.strategy.checkpointing = way;
  step.strategy.checkpoint_every = every;
  Sums sums;
  for (const std::vector<Unit>& layer : units_of(step.input()).layers)
    for (const Unit& unit : layer) {
      sums.kept += unit.memory.kept;
      sums.inputs += unit.memory.input;
      sums.flops += flops_of(unit.again);
      sums.launches += launches_of(unit.again);
      sums.operators += operators_of(unit.again, step.stack.operators);
      sums.forward_flops += flops_of(unit.forward);
    }
  return sums;
}

double recomputed_seconds(const OpGraph& graph) {
  double seconds = 0;
  for (const Op& op : graph.ops())
    if (op.kind == OpKind::compute && op.cause == Cause::recompute && op.rank == 0)
      seconds += op.seconds.value;
  return seconds;
}

}  // namespace

TEST_CASE("what routers keep by name waits until the backward pass is over", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp, tiny_model(8));
  step.strategy.experts.kernel = MoeKernel::grouped;
  step.strategy.checkpointing = Checkpointing::full;
  const ModelUnits units = units_of(step.input());
  double before_router = 0;  // of one layer
  for (const Unit& unit : units.layers.front()) {
    before_router += unit.memory.saved;
    if (unit.name == "mlp.gate") break;
  }
  const double all = static_cast<double>(step.model.layers) * before_router;
  // What goes at once, of all that activations take and give back.
  const auto given_up = [&](double bytes) {
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    double sum = 0, most = 0;
    bool found = false;
    for (const MemoryEffect& effect : graph.memory()) {
      if (effect.rank != 0 || graph.names()[index(effect.tensor_class)] != "activations") continue;
      sum += effect.bytes;
      most = std::max(most, sum);
      found = found || std::abs(effect.bytes + bytes) < 1e-9 * bytes;
    }
    CHECK(std::abs(sum) < 1e-9 * most);
    return found;
  };
  CHECK_FALSE(given_up(all));
  step.stack.routers_keep_graph = true;
  CHECK(given_up(all));
  // Without recomputation nothing is built twice.
  step.strategy.checkpointing = Checkpointing::none;
  CHECK_FALSE(given_up(all));
}

TEST_CASE("full recomputation keeps inputs of layers and runs each forward pass again",
          "[workloads]") {
  const TinyStep step = tiny_step(Sharding::zero2);
  const Sums sums = of_layers(step, Checkpointing::full);
  CHECK(sums.kept == 0);
  CHECK_THAT(sums.inputs, exactly(3 * value * h));
  CHECK_THAT(sums.flops, exactly(sums.forward_flops));
}

TEST_CASE(
    "hooks on what operators save cost the host, forward and again, where nobody is reentrant",
    "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2, tiny_model(8));
  step.strategy.checkpointing = Checkpointing::full;
  step.strategy.experts.kernel = MoeKernel::loop;
  step.strategy.experts.layout = ExpertLayout::fused;  // a visit of as many rounds as experts
  const auto hooks = [&](std::optional<bool> reentrant, const Unit& unit, Phase phase,
                         bool frozen = false) {
    step.strategy.reentrant = reentrant;
    return module_calls(step.input(), {.unit = &unit, .phase = phase, .frozen = frozen}).value;
  };
  step.strategy.reentrant = false;
  const std::vector<Unit> layer = units_of(step.input()).layers.front();
  double rounds = 0;
  for (const Unit& unit : layer) {
    CAPTURE(unit.name);
    rounds = std::max(rounds, static_cast<double>(unit.rounds));
    const double of_unit = unit.called_again ? static_cast<double>(unit.rounds) *
                                                   step.stack.host.saved_hook.value.value /
                                                   step.cluster.node.host.core_speed.number()
                                             : 0;
    const auto more = [&](Phase phase, const std::vector<KernelRow>& rows) {
      CHECK_THAT(hooks(false, unit, phase) - hooks(true, unit, phase) + 1,
                 exactly(of_unit * operators_of(rows, step.stack.operators) + 1));
    };
    more(Phase::forward, unit.forward);
    more(Phase::recompute, unit.again);
    // Nothing is saved backward, nor by a model that only scores.
    CHECK(hooks(false, unit, Phase::backward) == hooks(true, unit, Phase::backward));
    CHECK(hooks(false, unit, Phase::forward, true) == hooks(true, unit, Phase::forward));
    step.stack.reentrant = false;
    CHECK(hooks({}, unit, Phase::forward) == hooks(false, unit, Phase::forward));
    step.stack.reentrant = true;
    CHECK(hooks({}, unit, Phase::forward) == hooks(true, unit, Phase::forward));
  }
  CHECK(rounds == 8);
}

TEST_CASE("recomputation that stops early leaves out a layer's last product and its residual",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  const double peak = peak_memory_in_order(build_step(step.input(), Folding::off).graph, 0).bytes;
  step.stack.reentrant = false;
  const Sums sums = of_layers(step, Checkpointing::full);
  CHECK_THAT(sums.flops, exactly(sums.forward_flops - 3 * 2 * t * w * h));
  CHECK(peak_memory_in_order(build_step(step.input(), Folding::off).graph, 0).bytes == peak);
}

TEST_CASE("selective recomputation runs attention's own kernels again and frees what they save",
          "[workloads]") {
  const TinyStep step = tiny_step(Sharding::zero2);
  const Sums nothing = of_layers(step, Checkpointing::none);
  const Sums sums = of_layers(step, Checkpointing::selective);
  // A 4-byte logarithm for each token and head: the result is the input of the next product.
  CHECK_THAT(nothing.kept - sums.kept, exactly(3 * 4 * t * heads));
  CHECK(sums.inputs == 0);
  CHECK_THAT(sums.flops, exactly(3 * 4 * q * (128 * 129 / 2)));
  CHECK(sums.launches == 3);
}

TEST_CASE("recomputation by operators keeps attention and every second product", "[workloads]") {
  const TinyStep step = tiny_step(Sharding::zero2);
  const Sums sums = of_layers(step, Checkpointing::operators);
  // Of q, k, v, o, gate, up, down the first, third, fifth and seventh.
  CHECK_THAT(sums.kept, exactly(3 * (value * (q + kv + w + h) + value * q + 4 * t * heads)));
  CHECK_THAT(sums.inputs, exactly(3 * value * h));
  CHECK_THAT(sums.flops, exactly(3 * 2 * t * (h * kv + q * h + h * w)));
  // What is kept is found by an operator, but no kernel runs.
  CHECK(sums.operators - sums.launches == 3 * (4 + 1));
}

TEST_CASE("modules named by Megatron's words run again, and nothing else", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero1, tiny_model(8));
  step.strategy.experts.kernel = MoeKernel::grouped;
  step.strategy.experts.parallel = 4;
  step.strategy.checkpointing = Checkpointing::selective;
  step.stack.fused = {.norm = true, .rope = true, .activation = true, .permute = true};
  const auto with = [&](std::initializer_list<LayerPart> parts) {
    step.strategy.recomputed.chosen = {};
    for (const LayerPart part : parts)
      step.strategy.recomputed.chosen[static_cast<std::size_t>(part)] = true;
    return of_layers(step, Checkpointing::selective);
  };
  const auto exchanges = [&] {
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    return sum_of(graph, OpKind::collective, Cause::moe_all_to_all).count;
  };
  const Sums nothing = with({});
  CHECK(nothing.launches == 0);
  const double sent = exchanges();
  const double routed = static_cast<double>(step.model.experts->per_token) * value;
  const double width = static_cast<double>(step.model.experts->width);
  SECTION("the result of the experts' activation, one kernel a layer") {
    const Sums sums = with({LayerPart::moe_act});
    CHECK_THAT(nothing.kept - sums.kept, exactly(3 * routed * width));
    CHECK(sums.launches == 3);
    CHECK(sums.flops == 0);
    CHECK(exchanges() == sent);
  }
  SECTION("what norms make, which queries, keys and values share, and the block behind them") {
    const Sums sums = with({LayerPart::layernorm});
    CHECK_THAT(nothing.kept - sums.kept, exactly(3 * 2 * value * h));
    CHECK(sums.launches == 3 * 2);
    CHECK(exchanges() == sent);
  }
  SECTION("the whole block of experts, with its tokens sent once more") {
    const Sums sums = with({LayerPart::moe});
    CHECK(nothing.kept - sums.kept > 3 * routed * (h + 3 * width));
    CHECK_THAT(exchanges(), exactly(1.5 * sent));
  }
}

TEST_CASE("one layer of two is computed again", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  step.model.layers = 4;
  const Sums all = of_layers(step, Checkpointing::full);
  const Sums nothing = of_layers(step, Checkpointing::none);
  const Sums half = of_layers(step, Checkpointing::full, 2);
  CHECK_THAT(half.flops, exactly(all.flops / 2));
  CHECK_THAT(half.kept, exactly(nothing.kept / 2));
  CHECK_THAT(half.inputs, exactly(all.inputs / 2));
}

TEST_CASE("the more is kept, the less is computed again and the more memory a step needs",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  step.model.layers = 12;
  double seconds = -1, peak = 1e18;
  for (const Checkpointing way : {Checkpointing::none, Checkpointing::selective,
                                  Checkpointing::operators, Checkpointing::full}) {
    step.strategy.checkpointing = way;
    CAPTURE(checkpointing_names[static_cast<std::size_t>(way)]);
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    CHECK(recomputed_seconds(graph) > seconds);
    seconds = recomputed_seconds(graph);
    CHECK(peak_memory_in_order(graph, 0).bytes < peak);
    peak = peak_memory_in_order(graph, 0).bytes;
  }
}

TEST_CASE("activations on the host cross the link once each way, and leave two layers' behind",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2);
  step.model.layers = 12;
  step.job.accumulation = 2;
  const auto way = GENERATE(Checkpointing::none, Checkpointing::full);
  step.strategy.checkpointing = way;
  const Sums sums = of_layers(step, way);
  const double before =
      peak_memory_in_order(build_step(step.input(), Folding::automatic).graph, 0).bytes;
  step.strategy.activation_place = Offload::cpu;
  const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
  CHECK_THAT(sum_named(graph, OpKind::transfer, "activations_to_host").bytes,
             exactly(2 * (sums.kept + sums.inputs)));
  CHECK_THAT(sum_named(graph, OpKind::transfer, "activations_to_device").bytes,
             exactly(2 * (sums.kept + sums.inputs)));
  CHECK(peak_memory_in_order(graph, 0).bytes <
        before - (sums.kept + sums.inputs) * (1 - 3.0 / 12) + 1);
  double pinned = 0, most = 0;
  for (const MemoryEffect& effect : graph.memory())
    if (effect.pool == Pool::pinned && effect.rank == 0)
      most = std::max(most, pinned += effect.bytes);
  CHECK_THAT(most, exactly(sums.kept + sums.inputs));
  CHECK(std::abs(pinned) < 1e-6 * most);
}
