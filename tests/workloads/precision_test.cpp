// What runs in a type of its own, what is cast around it, and what is kept.
#include "workloads/strategy/precision.hpp"

#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/tiny_step.hpp"
#include "topology/catalog.hpp"
#include "workloads/layers/precision_units.hpp"
#include "workloads/program/run_visit.hpp"
#include "workloads/program/visits.hpp"
#include "workloads/sharding/resident.hpp"

using namespace stepsim;

namespace {

constexpr Shelf precisions{"workloads/precisions", "precision"};

Precision precision_called(std::string_view name) {
  const Document file = open_entry(source_data(), precisions, std::string(name));
  const Precision precision = read_precision(file.root());
  CHECK_NOTHROW(file.finish());
  return precision;
}

std::vector<Unit> layer_in(std::string_view name, bool compiled = true) {
  TinyStep step = tiny_step(Sharding::zero1);
  step.strategy.compiled = compiled;
  step.strategy.precision = precision_called(name);
  step.stack.recompute_keeps_type = true;
  return units_of(step.input()).layers.front();
}

const Unit& unit_of(const std::vector<Unit>& units, Role role) {
  for (const Unit& unit : units)
    if (unit.role == role) return unit;
  throw std::logic_error("no such unit");
}

double sum_of_casts(const std::vector<KernelRow>& rows) {
  double bytes = 0;
  for (const KernelRow& row : rows)
    if (row.name == "cast") bytes += row.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("every precision's file loads", "[workloads]") {
  const std::vector<std::string> names = names_on(source_data(), precisions);
  REQUIRE(names.size() >= 9);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Precision precision = precision_called(name);
    CHECK(precision.name == name);
    CHECK_FALSE(precision.title.empty());
    if (!precision.narrow()) continue;
    CHECK(precision.multiplies(Products::attention));
    CHECK_FALSE(precision.multiplies(Products::head));
    CHECK(precision.casts.input.bytes > 0);
    CHECK(precision.rate.low.value <= precision.rate.value.value);
  }
}

TEST_CASE("products in 8 bits have both operands in 8 bits and their casts before them",
          "[workloads]") {
  const std::vector<Unit> plain = layer_in("bf16"), narrow = layer_in("fp8-current");
  const Unit& before = unit_of(plain, Role::down);
  const Unit& after = unit_of(narrow, Role::down);
  REQUIRE(after.forward.size() == 3);  // input, weight, product
  const KernelRow& product = after.forward.back();
  CHECK(product.type == ProductType::fp8);
  CHECK_THAT(product.flops, exactly(before.forward.back().flops));
  const double input = product.rows * product.depth, weight = product.depth * product.width;
  CHECK_THAT(before.forward.back().bytes - product.bytes, exactly(input + weight));
  CHECK(sum_of_casts(after.forward) >= 6 * input);
  CHECK_THAT(after.memory.saved, exactly(before.memory.saved / 2));
  // Attention's own kernels and norms are as they were.
  for (const Role role : {Role::attend, Role::attention_norm})
    CHECK_THAT(unit_of(narrow, role).forward.front().bytes,
               exactly(unit_of(plain, role).forward.front().bytes));
  for (const KernelRow& row : after.backward)
    if (row.kind == KernelClass::gemm) CHECK(row.type == ProductType::fp8);
}

TEST_CASE("what products share is cast once", "[workloads]") {
  const std::vector<Unit> units = layer_in("fp8-tensorwise");
  CHECK(sum_of_casts(unit_of(units, Role::query).backward) <
        sum_of_casts(unit_of(units, Role::attention_output).backward));
  CHECK(sum_of_casts(unit_of(units, Role::query).forward) <
        sum_of_casts(unit_of(units, Role::attention_output).forward));
}

TEST_CASE("without a compiler casts go operator by operator", "[workloads]") {
  const Unit compiled = unit_of(layer_in("fp8-tensorwise"), Role::down);
  const Unit eager = unit_of(layer_in("fp8-tensorwise", false), Role::down);
  CHECK(sum_of_casts(eager.forward) > 4 * sum_of_casts(compiled.forward));
  CHECK_THAT(eager.memory.saved, exactly(compiled.memory.saved));  // inputs stay in 16 bits
}

TEST_CASE("weights that stay are cast once for all micro-batches of a step", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero1);
  step.strategy.precision = precision_called("fp8-delayed");
  const auto casts = [&] {
    return sum_of_casts(unit_of(units_of(step.input()).layers.front(), Role::down).forward);
  };
  step.job.accumulation = 1;
  const double once = casts();
  step.job.accumulation = 4;
  const double each = casts();
  CHECK(each < once);
  step.strategy.sharding = Sharding::fsdp;  // gathered anew
  CHECK_THAT(casts(), exactly(once));
}

TEST_CASE("FSDP gathers half the bytes of what is multiplied in 8 bits", "[workloads]") {
  const auto gathered = [](bool narrow) {
    TinyStep step = tiny_step(Sharding::fsdp);
    step.strategy.precision = precision_called("fp8-tensorwise");
    step.strategy.fsdp.narrow_gather = narrow;
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    return sum_named(graph, OpKind::collective, "gather_group").bytes;
  };
  CHECK(gathered(true) < 0.9 * gathered(false));
}

TEST_CASE("weights that come in 8 bits are not cast but transposed", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.strategy.precision = precision_called("fp8-current");
  const auto casts = [&] {
    return sum_of_casts(unit_of(units_of(step.input()).layers.front(), Role::down).forward);
  };
  const Precision::Casts& each = step.strategy.precision.casts;
  const double all = casts();
  step.strategy.fsdp.narrow_gather = true;
  const double weights = unit_of(units_of(step.input()).layers.front(), Role::down).elements();
  CHECK_THAT(all - casts(), exactly((each.weight.bytes - each.gathered.bytes) * weights));
}

TEST_CASE("modules of a library that PyTorch computes again forget their 8 bits", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.strategy.checkpointing = Checkpointing::full;
  const auto down = [&](std::string_view precision, bool keeps) {
    step.strategy.precision = precision_called(precision);
    step.stack.recompute_keeps_type = keeps;
    return unit_of(units_of(step.input()).layers.front(), Role::down);
  };
  const auto type = [](const std::vector<KernelRow>& rows) { return rows.back().type; };
  const Unit keeps = down("fp8-current", true), forgets = down("fp8-current", false),
             wide = down("bf16", false);
  for (const Unit& unit : {keeps, forgets}) CHECK(type(unit.forward) == ProductType::fp8);
  CHECK(type(keeps.again) == ProductType::fp8);
  CHECK(type(keeps.backward) == ProductType::fp8);
  CHECK(type(forgets.again) == ProductType::bf16);
  CHECK(type(forgets.backward) == ProductType::bf16);
  CHECK(sum_of_casts(forgets.backward) == 0);
  CHECK_THAT(forgets.memory.saved, exactly(wide.memory.saved));
  // torchao's modules know their type by themselves, and without recomputation nothing is called
  // again.
  CHECK(type(down("fp8-tensorwise", false).again) == ProductType::fp8);
  step.strategy.checkpointing = Checkpointing::none;
  CHECK(type(down("fp8-current", false).backward) == ProductType::fp8);
}

TEST_CASE("where 8 bits are forgotten the host calls the same modules in 16", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.strategy.checkpointing = Checkpointing::full;
  const auto call = [&](std::string_view precision, bool keeps, Phase phase) {
    step.strategy.precision = precision_called(precision);
    step.stack.recompute_keeps_type = keeps;
    const ModelUnits units = units_of(step.input());
    const Unit& unit = unit_of(units.layers.front(), Role::down);
    return module_calls(step.input(), {.unit = &unit, .phase = phase}).value;
  };
  CHECK(call("fp8-current", false, Phase::forward) == call("fp8-current", true, Phase::forward));
  for (const Phase phase : {Phase::recompute, Phase::backward}) {
    const double wide = call("fp8-current", false, phase);
    CHECK(wide == step.strategy.precision.module_call_wide.number());
    CHECK(wide < call("fp8-current", true, phase));
    CHECK(wide > call("bf16", false, phase));  // PyTorch's own are lighter
  }
}

TEST_CASE("where 8 bits are forgotten ranks collect 16 again", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.strategy.tensor_parallel.size = 4;
  step.strategy.tensor_parallel.sequence = true;
  const auto collected = [&](std::string_view precision, Checkpointing way, bool keeps = false) {
    step.strategy.checkpointing = way;
    step.strategy.precision = precision_called(precision);
    step.stack.recompute_keeps_type = keeps;
    const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
    return sum_named(graph, OpKind::collective, "collect_sequence").bytes;
  };
  // What layers collect in one forward pass is what recomputation adds; the first one has half.
  const double wide = collected("bf16", Checkpointing::full);
  const double pass = wide - collected("bf16", Checkpointing::none);
  REQUIRE(pass > 0);
  CHECK_THAT(wide - collected("fp8-current", Checkpointing::full), exactly(pass / 2));
  CHECK_THAT(collected("fp8-current", Checkpointing::full, true) -
                 collected("fp8-current", Checkpointing::none, true),
             exactly(pass / 2));
}

TEST_CASE("of modules computed again those with products forget their 8 bits", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero1);
  step.strategy.checkpointing = Checkpointing::selective;
  const auto units = [&](std::string_view precision, LayerPart part, bool keeps = false) {
    step.strategy.precision = precision_called(precision);
    step.strategy.recomputed.chosen = {};
    step.strategy.recomputed.chosen[static_cast<std::size_t>(part)] = true;
    step.stack.recompute_keeps_type = keeps;
    return units_of(step.input()).layers.front();
  };
  const auto type = [](const std::vector<KernelRow>& rows) { return rows.back().type; };
  const std::vector<Unit> block = units("fp8-current", LayerPart::mlp);
  CHECK(type(unit_of(block, Role::down).again) == ProductType::bf16);
  CHECK(type(unit_of(block, Role::down).backward) == ProductType::bf16);
  CHECK(type(unit_of(block, Role::query).backward) == ProductType::fp8);
  const auto kept = [](const std::vector<Unit>& all, Role role) {
    return unit_of(all, role).memory.kept;
  };
  CHECK_THAT(kept(block, Role::down), exactly(kept(units("bf16", LayerPart::mlp), Role::down)));
  // Attention's own kernels call no module with products.
  for (const Unit& unit : units("fp8-current", LayerPart::core_attn)) {
    CAPTURE(unit.name);
    const Unit same = unit_of(units("fp8-current", LayerPart::core_attn, true), unit.role);
    CHECK_FALSE(unit.narrow_once);
    CHECK(unit.memory.kept == same.memory.kept);
    CHECK(flops_of(unit.again) == flops_of(same.again));
  }
}

TEST_CASE("modules that PyTorch calls again have no end before their last product", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.strategy.checkpointing = Checkpointing::full;
  step.stack.reentrant = false;
  const auto again = [&](std::string_view precision) {
    step.strategy.precision = precision_called(precision);
    return flops_of(unit_of(units_of(step.input()).layers.front(), Role::down).again);
  };
  CHECK(again("bf16") == 0);
  CHECK(again("fp8-tensorwise") == 0);
  CHECK(again("fp8-current") > 0);
}

TEST_CASE("what ranks collect is cast in pieces, and turned whole for the weights' product",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp);
  step.strategy.compiled = true;
  step.strategy.precision = precision_called("fp8-tensorwise");
  step.strategy.tensor_parallel.size = 4;
  step.strategy.tensor_parallel.sequence = true;
  const std::vector<Unit> units = units_of(step.input()).layers.front();
  const Precision::Casts& casts = step.strategy.precision.casts;
  REQUIRE(casts.turned.bytes == 2);  // read and written once
  const auto product = [&](Role role) { return unit_of(units, role).forward.back(); };
  // The gradient of a block's result is collected.
  const KernelRow last = product(Role::down);
  const double result = last.rows * last.width;
  CHECK_THAT(sum_of_casts(unit_of(units, Role::down).backward),
             exactly(casts.gradient.bytes * result / 4 + casts.turned.bytes * result +
                     casts.weight_back.bytes * last.depth * last.width +
                     casts.input_back.bytes * last.rows * last.depth));
  // A block's input is collected, and not cast once more.
  const KernelRow first = product(Role::up);
  CHECK_THAT(sum_of_casts(unit_of(units, Role::up).backward),
             exactly(casts.gradient.bytes * first.rows * first.width +
                     casts.turned.bytes * first.rows * first.depth +
                     casts.weight_back.bytes * first.depth * first.width));
}

TEST_CASE("copies of weights in 4 bits are held between steps", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero1);
  const auto held = [&] {
    double bytes = 0;
    for (const Holding& each : resident_of(step.rank()).holdings)
      if (each.held == Held::cast_weights) bytes += each.bytes;
    return bytes;
  };
  CHECK(held() == 0);
  step.strategy.precision = precision_called("nvfp4");
  CHECK(held() > 0);
}

TEST_CASE("in 32 bits all of a layer is twice as large, and products run at their own peak",
          "[workloads]") {
  const std::vector<Unit> half = layer_in("bf16"), whole = layer_in("fp32");
  REQUIRE(half.size() == whole.size());
  for (std::size_t i = 0; i < half.size(); ++i) {
    CAPTURE(half[i].name);
    CHECK_THAT(whole[i].memory.saved, exactly(2 * half[i].memory.saved));
    CHECK_THAT(whole[i].memory.gradient, exactly(2 * half[i].memory.gradient));
    REQUIRE(whole[i].forward.size() == half[i].forward.size());  // no casts
    for (std::size_t row = 0; row < half[i].forward.size(); ++row) {
      CHECK_THAT(whole[i].forward[row].bytes, exactly(2 * half[i].forward[row].bytes));
      CHECK_THAT(whole[i].forward[row].flops, exactly(half[i].forward[row].flops));
    }
  }
  CHECK(unit_of(whole, Role::down).forward.back().type == ProductType::fp32);
  CHECK(unit_of(layer_in("tf32"), Role::down).forward.back().type == ProductType::tf32);
}

TEST_CASE("what stays on a GPU in 32 bits", "[workloads]") {
  const auto held = [](Sharding sharding, std::string_view name, bool masters) {
    TinyStep step = tiny_step(sharding);
    step.strategy.precision = precision_called(name);
    step.strategy.master_weights = masters;
    return resident_of(rank_part(step.input(), LayersWith::own_units));
  };
  const auto of = [](const Resident& resident, Held what) {
    double bytes = 0;
    for (const Holding& each : resident.holdings) bytes += each.held == what ? each.bytes : 0;
    return bytes;
  };
  // Parameters of 32 bits are their own masters, but DeepSpeed's partitions are copies.
  const Resident half = held(Sharding::zero0, "bf16", true);
  const Resident whole = held(Sharding::zero0, "fp32", false);
  CHECK_THAT(of(whole, Held::parameters), exactly(2 * of(half, Held::parameters)));
  CHECK(of(whole, Held::master_weights) == 0);
  CHECK_THAT(of(whole, Held::optimizer), exactly(of(half, Held::optimizer)));
  const Resident shards = held(Sharding::zero3, "fp32", true);
  CHECK_THAT(of(shards, Held::master_weights), exactly(of(shards, Held::parameters)));
  CHECK_THAT(of(held(Sharding::fsdp, "fp32", false), Held::parameters),
             exactly(of(held(Sharding::fsdp, "bf16", true), Held::parameters)));
}
