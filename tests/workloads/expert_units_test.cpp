// Experts under each kernel: operators, kernels, bytes and FLOP counted by hand.
#include <algorithm>
#include <numeric>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/layers/routing.hpp"
#include "workloads/layers/units.hpp"

using namespace stepsim;
using Catch::WithinAbs;

namespace {

// Eight experts of width 32 on 64, two for each of 128 tokens.
constexpr double t = 128, h = 64, w = 32, n = 8, k = 2, half = 2;

std::vector<Unit> units_of(MoeKernel kernel, const std::function<void(TinyStep&)>& change = {}) {
  TinyStep step = tiny_step(Sharding::zero2, tiny_model(8));
  step.strategy.experts.kernel = kernel;
  if (change) change(step);
  return layer_units(step.model, step.stack, step.strategy, load_of(step.model, step.job, 0), 0);
}

Unit named(const std::vector<Unit>& units, const std::string& name) {
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const Unit& unit) { return unit.name == name; });
  REQUIRE(found != units.end());
  return *found;
}

double bytes_of(const std::vector<KernelRow>& rows, std::string_view name) {
  double sum = 0;
  for (const KernelRow& row : rows)
    if (row.name == name) sum += row.bytes;
  return sum;
}

Operators counts() {
  return tiny_step(Sharding::zero2).stack.operators;
}

double flops_of_experts(const std::vector<Unit>& units) {
  double sum = 0;
  for (const Unit& unit : units)
    if (unit.in_moe && unit.name != "mlp.gate")
      sum += static_cast<double>(unit.times * unit.rounds) * flops_of(unit.forward);
  return sum;
}

}  // namespace

TEST_CASE("a loop over experts dispatches 11 operators and 21, of which some are many kernels",
          "[workloads]") {
  const Unit expert = named(units_of(MoeKernel::loop), "mlp.experts");
  CHECK(expert.times == 8);
  CHECK(expert.stops.reads == 2);
  CHECK(operators_of(expert.forward, counts()) == 11);
  CHECK(operators_of(expert.backward, counts()) == 21);
  CHECK(launches_of(expert.backward) == 35);
  // A zero-filled tensor of all tokens is written, added to and read for each expert.
  CHECK_THAT(bytes_of(expert.backward, "index_backward"), exactly(4 * half * t * h));
}

TEST_CASE("a loop by masks passes over all copies of all tokens for each expert", "[workloads]") {
  const std::vector<Unit> units =
      units_of(MoeKernel::loop, [](TinyStep& step) { step.model.experts->masked = true; });
  const Unit expert = named(units, "mlp.experts");
  CHECK(expert.times == 8);
  CHECK(expert.stops.reads == 2);
  // Two comparisons of 64-bit numbers, and two searches that pass twice, over all copies.
  CHECK_THAT(bytes_of(expert.forward, "mask_find"), exactly(2 * (8 + 1 + 2) * k * t));
  CHECK_THAT(bytes_of(expert.forward, "mask_dispatch"), exactly(4 * half * k * t / n * h));
  // A clone, zeros, and a sum: two, one and three passes.
  CHECK_THAT(bytes_of(expert.backward, "mask_backward"), exactly(6 * half * k * t * h));
  CHECK(bytes_of(expert.backward, "index_backward") == 0);
  CHECK_THAT(expert.memory.gradient, exactly(half * k * t * h));
  CHECK_THAT(bytes_of(named(units, "mlp.repeat").forward, "repeat"), exactly(2 * half * k * t * h));
  CHECK(bytes_of(named(units, "mlp.sum").forward, "weigh") > 0);
  CHECK_THAT(flops_of_experts(units), exactly(flops_of_experts(units_of(MoeKernel::loop))));
}

TEST_CASE("a library without a grouped kernel launches a product for each expert", "[workloads]") {
  const auto experts = [](bool singly) {
    return named(units_of(MoeKernel::grouped,
                          [&](TinyStep& step) {
                            step.stack.fused.permute = true;
                            step.model.experts->bias = true;
                            if (singly) step.stack.host.expert_product.value = {20e-6};
                          }),
                 "mlp.experts");
  };
  CHECK(experts(false).pieces == 0);
  CHECK(experts(true).pieces == 2 * n);
  // Biases then come one expert after the other, too; over the same rows.
  const double more = launches_of(experts(true).forward) - launches_of(experts(false).forward);
  CHECK_THAT(more, exactly((n - 1) * counts()[Operator::expert_bias].kernels));
  CHECK_THAT(bytes_of(experts(true).forward, "expert_bias"),
             exactly(bytes_of(experts(false).forward, "expert_bias")));
}

TEST_CASE("products of single experts in 32 bits are those of all in 16, cast around each",
          "[workloads]") {
  const auto experts = [](MoeKernel kernel) { return named(units_of(kernel), "mlp.experts"); };
  const Unit single = experts(MoeKernel::single_fp32), grouped = experts(MoeKernel::grouped);
  CHECK(single.tensors == grouped.tensors);
  CHECK_THAT(flops_of(single.forward), exactly(flops_of(grouped.forward)));
  CHECK_THAT(flops_of(single.backward), exactly(2 * flops_of(single.forward)));
  // Gate, up and down read their rows and weights and give their rows.
  const double rows = t * k;
  CHECK_THAT(bytes_of(single.forward, "cast"),
             exactly((half + 4) * (3 * rows * (h + w) + 3 * n * h * w)));
  CHECK_THAT(bytes_of(single.backward, "cast"), exactly(2 * bytes_of(single.forward, "cast")));
  double products = 0;
  for (const KernelRow& row : single.forward) {
    if (row.flops == 0) continue;
    products += row.repeats * row.launches;
    CHECK(row.type == ProductType::fp32);
  }
  CHECK(products == 3 * n);
  CHECK(single.stops.reads == 3);
  // The library's loop calls each product and its three casts; no module of the model does.
  CHECK(single.looped == 4 * products);
  CHECK(grouped.looped == 0);
}

TEST_CASE("a loop over slices reads back five values and passes over the whole stack for each",
          "[workloads]") {
  const std::vector<Unit> units = units_of(
      MoeKernel::loop, [](TinyStep& step) { step.strategy.experts.layout = ExpertLayout::fused; });
  const Unit experts = named(units, "mlp.experts");
  CHECK(experts.tensors == std::vector<double>{n * h * 2 * w, n * w * h});
  CHECK(experts.rounds == 8);
  CHECK(experts.stops.reads == 5);
  CHECK(operators_of(experts.forward, counts()) == 10);
  // Over all experts of a layer 4 x 16 bits x experts x all their weights, twice as much for
  // twice the experts squared.
  CHECK_THAT(n * bytes_of(experts.backward, "slice_backward"),
             exactly(4 * half * n * (3 * n * h * w)));
  // The products are the same as those of single experts.
  CHECK_THAT(flops_of_experts(units), exactly(flops_of_experts(units_of(MoeKernel::loop))));
}

TEST_CASE("Tutel keeps what comes back from experts in 32 bits", "[workloads]") {
  const Unit decode = named(units_of(MoeKernel::tutel), "mlp.decode");
  CHECK_THAT(decode.memory.saved, exactly(4 * k * t * h));
  CHECK_THAT(decode.memory.backward, exactly(4 * k * t * h));
}

TEST_CASE("experts that stay apart are stacked for a grouped kernel, and kept so for its gradients",
          "[workloads]") {
  for (const MoeKernel kernel : {MoeKernel::grouped, MoeKernel::megablocks, MoeKernel::padded}) {
    const auto experts = [&](ExpertLayout layout) {
      return named(units_of(kernel, [&](TinyStep& s) { s.strategy.experts.layout = layout; }),
                   "mlp.experts");
    };
    const Unit apart = experts(ExpertLayout::separate), fused = experts(ExpertLayout::fused);
    CHECK(apart.tensors == std::vector<double>(3 * 8, h * w));
    CHECK(apart.owners == 3 * 8);  // a hook and a gather of stage 3 each
    CHECK(fused.tensors.size() == 2);
    CHECK(fused.owners == 1);
    CHECK(apart.elements() == fused.elements());
    const double weights = half * 3 * n * h * w;
    CHECK_THAT(bytes_of(apart.forward, "stack"), exactly(2 * weights));
    CHECK_THAT(bytes_of(apart.backward, "stack"), exactly(2 * weights));
    CHECK_THAT(apart.memory.saved - fused.memory.saved, exactly(weights));
    CHECK_THAT(apart.memory.backward - fused.memory.backward, exactly(weights));
    CHECK_THAT(flops_of(apart.forward), exactly(flops_of(fused.forward)));
  }
}

TEST_CASE("stage 3 gathers experts that stay apart one by one, whatever multiplies them",
          "[workloads]") {
  const auto gathers = [](ExpertLayout layout) {
    TinyStep step = tiny_step(Sharding::zero3, tiny_model(8));
    step.strategy.experts.kernel = MoeKernel::grouped;
    step.strategy.experts.layout = layout;
    step.strategy.zero.persistence_threshold = 0;
    step.strategy.zero.max_live = step.strategy.zero.max_reuse = 0;
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    return sum_of(graph, OpKind::collective, Cause::gather_bytes);
  };
  const Sum apart = gathers(ExpertLayout::separate), fused = gathers(ExpertLayout::fused);
  CHECK_THAT(apart.bytes, exactly(fused.bytes));
  // Forward, recomputation and backward of three layers: 24 gathers instead of one.
  CHECK(apart.count - fused.count == 3 * 3 * (24 - 1));
}

TEST_CASE("the work of experts, kernel by kernel", "[workloads]") {
  const double needed = 6 * t * k * h * w;
  CHECK_THAT(flops_of_experts(units_of(MoeKernel::loop)), exactly(needed));
  CHECK_THAT(flops_of_experts(units_of(MoeKernel::grouped)), exactly(needed));
  // Half a block of 128 rows for each expert.
  CHECK_THAT(flops_of_experts(units_of(MoeKernel::megablocks)),
             exactly(6 * (t * k + n * 127 / 2) * h * w));
  CHECK_THAT(flops_of_experts(units_of(MoeKernel::all_experts)), exactly(needed * n / k));
  const auto fused = [](TinyStep& step) { step.strategy.experts.layout = ExpertLayout::fused; };
  CHECK_THAT(flops_of_experts(units_of(MoeKernel::all_experts, fused)), exactly(needed * n / k));
  const auto roomy = [](TinyStep& step) { step.strategy.experts.capacity_factor = 1.5; };
  CHECK_THAT(flops_of_experts(units_of(MoeKernel::tutel, roomy)), exactly(1.5 * needed));
  CHECK_THAT(flops_of_experts(units_of(MoeKernel::deepspeed, roomy)), exactly(1.5 * needed));
  // Masks of tokens x slots are multiplied twice: quadratic in the tokens.
  CHECK_THAT(flops_of_experts(units_of(MoeKernel::deepspeed_einsum, roomy)),
             exactly(1.5 * needed + 2 * 2 * t * (1.5 * t * k) * h));
}

TEST_CASE("without dropping, every expert has the slots that the busiest needs", "[workloads]") {
  const auto skewed = [](TinyStep& step) {
    step.strategy.experts.capacity_factor = 0;
    step.strategy.experts.skew = 0.5;
  };
  const std::vector<Unit> units = units_of(MoeKernel::tutel, skewed);
  CHECK(named(units, "mlp.encode").stops.agrees);
  CHECK_THAT(flops_of_experts(units), exactly(6 * t * k * imbalance(8, 0.5) * h * w));
  // Slots of fixed number are not lengthened by skew: what does not fit is dropped.
  const auto fixed = [](TinyStep& step) { step.strategy.experts.skew = 0.5; };
  CHECK_THAT(flops_of_experts(units_of(MoeKernel::tutel, fixed)), exactly(6 * t * k * h * w));
  CHECK_FALSE(named(units_of(MoeKernel::tutel, fixed), "mlp.encode").stops.agrees);
}

TEST_CASE("a skewed loop has experts of all sizes and loses no token", "[workloads]") {
  const std::vector<Unit> units =
      units_of(MoeKernel::loop, [](TinyStep& step) { step.strategy.experts.skew = 1; });
  CHECK(std::count_if(units.begin(), units.end(), [](const Unit& unit) {
          return unit.name == "mlp.experts" && unit.times == 1;
        }) == 8);
  CHECK_THAT(flops_of_experts(units), exactly(6 * t * k * h * w));
}

TEST_CASE("shares of experts add up, and spread as asked", "[workloads]") {
  CHECK(imbalance(64, 0) == 1);
  for (const double skew : {0.1, 0.3, 1.0}) {
    const std::vector<double> shares = expert_shares(512, skew);
    CAPTURE(skew);
    CHECK_THAT(std::accumulate(shares.begin(), shares.end(), 0.0), exactly(1.0));
    CHECK(std::is_sorted(shares.begin(), shares.end()));
    double squares = 0;
    for (const double share : shares) squares += share * share;
    // Of as many equal parts of the distribution only the outermost are cut short.
    CHECK_THAT(std::sqrt(squares * 512 - 1), WithinRel(skew, 0.06));
    CHECK(imbalance(512, skew) > 1 + skew);
  }
}
