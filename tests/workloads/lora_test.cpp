// Adapters beside frozen matrices: what is multiplied, gathered, reduced and kept.
#include <algorithm>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/program/run_visit.hpp"
#include "workloads/program/visits.hpp"
#include "workloads/step/model_flops.hpp"

using namespace stepsim;

namespace {

constexpr double t = 128, h = 64, q = 64, kv = 32, w = 192, rank = 4, half = 2;

TinyStep adapted(Sharding sharding, LoraTargets targets = LoraTargets::linear,
                 const WeightFormat& quantised = {}) {
  TinyStep step = tiny_step(sharding);
  step.strategy.lora = {4, targets, quantised};
  return step;
}

// In and out of q, k, v, o, gate, up and down.
constexpr double attention_sides = (h + q) + 2 * (h + kv) + (q + h);
constexpr double linear_sides = attention_sides + 3 * (h + w);

double trained(const TinyStep& step) {
  double sum = 0;
  for (const std::vector<Unit>& layer : units_of(step.input()).layers)
    for (const Unit& unit : layer) sum += unit.trained_elements();
  return sum;
}

double backward_flops(const TinyStep& step) {
  double sum = 0;
  const std::vector<Unit> layer = units_of(step.input()).layers.front();
  for (const Unit& unit : layer)
    for (const KernelRow& row : unit.backward)
      if (row.kind == KernelClass::gemm) sum += row.flops;
  return sum;
}

}  // namespace

TEST_CASE("adapters stand beside the matrices that are named", "[workloads]") {
  TinyStep step = adapted(Sharding::zero2);
  step.strategy.lora.modules = {"q_proj", "v_proj"};
  CHECK_THAT(trained(step), exactly(3 * rank * ((h + q) + (h + kv))));
  step.strategy.lora.modules = {"self_attn.o_proj", "down_proj"};
  CHECK_THAT(trained(step), exactly(3 * rank * ((q + h) + (w + h))));
  step.strategy.lora.modules = {"proj"};  // the end of a name is no name
  CHECK(trained(step) == 0);
}

TEST_CASE("an adapter has rank x (in + out) elements for each matrix that it stands beside",
          "[workloads]") {
  CHECK_THAT(trained(adapted(Sharding::zero2)), exactly(3 * rank * linear_sides));
  CHECK_THAT(trained(adapted(Sharding::zero2, LoraTargets::attention)),
             exactly(3 * rank * attention_sides));
}

TEST_CASE("a frozen matrix is multiplied once in the backward pass, an adapter twice",
          "[workloads]") {
  const double matrices = 2 * h * q + 2 * h * kv + 3 * h * w;
  CHECK_THAT(backward_flops(adapted(Sharding::zero2)),
             exactly(2 * t * matrices + 4 * t * rank * linear_sides));
  CHECK_THAT(backward_flops(tiny_step(Sharding::zero2)), exactly(4 * t * matrices));
  const double head = 2000 * h;
  CHECK_THAT(model_flops(adapted(Sharding::zero2).input()).matrices,
             exactly(4 * t * (3 * matrices + head) + 6 * t * 3 * rank * linear_sides));
}

TEST_CASE("only adapters are reduced and updated, but under stage 3 all is gathered",
          "[workloads]") {
  const auto sharding = GENERATE(Sharding::zero1, Sharding::zero2, Sharding::zero3, Sharding::fsdp);
  CAPTURE(to_text(sharding));
  TinyStep step = adapted(sharding);
  step.strategy.zero.max_reuse = step.strategy.zero.prefetch_bucket = 0;
  step.strategy.zero.persistence_threshold = 0;
  const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
  const double width = sharding == Sharding::fsdp ? 4 : half;  // FSDP reduces in 32 bits
  CHECK_THAT(sum_of(graph, OpKind::collective, Cause::gradient_reduce).bytes,
             exactly(width * trained(step)));
  const double gathered = sum_of(graph, OpKind::collective, Cause::gather_bytes).bytes;
  if (sharding == Sharding::zero2) CHECK_THAT(gathered, exactly(half * trained(step)));
  if (sharding == Sharding::zero3) {
    const Elements e = elements_of(step);
    CHECK_THAT(gathered, exactly(half * (3 * (e.inner + trained(step)) + 2 * e.outer)));
  }
}

TEST_CASE("a frozen model keeps no gradients and no optimizer states of it", "[workloads]") {
  const double all = elements_of(tiny_step(Sharding::zero0)).total, n = 8;
  const double adapters = 3 * rank * linear_sides;
  const auto resident = [](const TinyStep& step) {
    return build_step(step.input(), Folding::automatic).resident.in(Pool::device);
  };
  CHECK_THAT(resident(adapted(Sharding::zero0)),
             exactly(half * (all + adapters) + adapters * (4 + 8)));
  CHECK_THAT(resident(adapted(Sharding::zero2)),
             exactly(half * (all + adapters) + adapters / n * (4 + 8)));
  TinyStep three = adapted(Sharding::zero3);
  three.strategy.zero.persistence_threshold = 0;
  CHECK_THAT(resident(three), exactly(half * (all + adapters) / n + adapters / n * (half + 4 + 8) +
                                      half * three.strategy.zero.reduce_bucket));
}

TEST_CASE("matrices in four bits take a quarter of the memory and are unpacked in each pass",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero0);
  step.model.hidden = step.model.feed_forward.width = 1024;
  step.strategy.lora = {4, LoraTargets::linear};
  const auto layer = [&] { return units_of(step.input()).layers.front(); };
  const auto stored = [](const std::vector<Unit>& units) {
    double sum = 0;
    for (const Unit& unit : units)
      if (!unit.trained && unit.kind == TensorClass::dense) sum += half * unit.elements();
    return sum;
  };
  const std::vector<Unit> plain = layer();
  step.strategy.lora.quantised = format_called("nf4");
  const std::vector<Unit> packed = layer();
  // Half a byte, a byte for each 64 weights, four bytes for each 256 of those.
  const double bytes = 0.5 + 1.0 / 64 + 4.0 / (64 * 256);
  CHECK_THAT(stored(packed), exactly(stored(plain) * bytes / half));
  const auto unpacked = [](const std::vector<Unit>& units, bool backward) {
    double sum = 0;
    for (const Unit& unit : units)
      for (const KernelRow& row : backward ? unit.backward : unit.forward)
        if (row.op == Operator::unpack) sum += row.bytes;
    return sum;
  };
  const double weights = stored(plain) / half;
  const WeightFormat nf4 = format_called("nf4");
  CHECK(nf4.forward.bytes >= bytes + half);
  CHECK_THAT(unpacked(packed, false), exactly(weights * nf4.forward.bytes));
  CHECK_THAT(unpacked(packed, true), exactly(weights * nf4.backward.bytes));
  CHECK(unpacked(plain, false) == 0);
}

TEST_CASE("experts that are one tensor are in four bits only where that is said", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero0);
  step.model.hidden = 1024;
  step.model.experts = Experts{.count = 4, .per_token = 2, .width = 512, .fused = true};
  step.strategy.experts.kernel = MoeKernel::grouped;
  const auto experts = [&](const WeightFormat& quantised) {
    step.strategy.lora = {4, LoraTargets::linear, quantised};
    const std::vector<Unit> layer = units_of(step.input()).layers.front();
    return *std::find_if(layer.begin(), layer.end(),
                         [](const Unit& unit) { return unit.kind == TensorClass::expert; });
  };
  const Unit plain = experts(WeightFormat{}), all = experts(format_called("nf4_all"));
  const double bytes = 0.5 + 1.0 / 64 + 4.0 / (64 * 256), weights = 4 * 3 * 1024 * 512;
  CHECK_THAT(plain.elements(), exactly(weights));
  CHECK_THAT(experts(format_called("nf4")).elements(), exactly(weights));
  CHECK_THAT(all.elements(), exactly(weights * bytes / half));
  // Unpacked once, and kept for the backward pass of the model's own products.
  CHECK_THAT(all.memory.saved - plain.memory.saved, exactly(weights * half));
  const auto unpacks = [](const std::vector<KernelRow>& rows) {
    return std::count_if(rows.begin(), rows.end(),
                         [](const KernelRow& row) { return row.op == Operator::unpack; });
  };
  CHECK(unpacks(all.forward) == 1);
  CHECK(unpacks(all.backward) == 0);
}

TEST_CASE("adapters beside divided matrices: parts of the sums that are there, and of gradients",
          "[workloads]") {
  TinyStep step = adapted(Sharding::zero1);
  const double alone = model_flops(step.input()).matrices;
  const auto handed = [](const TinyStep& each) {
    const OpGraph graph = build_step(each.input(), Folding::automatic).graph;
    return sum_of(graph, OpKind::collective, Cause::tensor_parallel).bytes;
  };
  TinyStep whole = tiny_step(Sharding::zero1);
  for (TinyStep* each : {&step, &whole}) {
    each->strategy.tensor_parallel.size = 2;
    each->strategy.tensor_parallel.sequence = false;
  }
  CHECK_THAT(2 * model_flops(step.input()).matrices, exactly(alone));
  // Ways down beside q, k, v, gate and up, ways up beside o and down are on both ranks.
  const double common = 3 * rank * 7 * h;
  CHECK_THAT(trained(step), exactly((3 * rank * linear_sides + common) / 2));
  CHECK_THAT(handed(step) - handed(whole), exactly(half * common));
}

TEST_CASE("adapters in 32 bits cast what comes in, there and back, where nothing is sharded",
          "[workloads]") {
  const auto cast = [](Sharding sharding, bool casts) {
    TinyStep step = adapted(sharding);
    step.stack.adapters.casts = casts;
    const std::vector<Unit> layer = units_of(step.input()).layers.front();
    double bytes = 0;
    for (const Unit& unit : layer)
      for (const auto* rows : {&unit.forward, &unit.backward})
        for (const KernelRow& row : *rows)
          if (row.op == Operator::lora_cast) bytes += row.bytes;
    return bytes;
  };
  const double each = tiny_step(Sharding::zero0).stack.operators[Operator::lora_cast].bytes;
  constexpr double inputs = 5 * h + q + w;  // of q, k, v, gate, up; of o; of down
  CHECK_THAT(cast(Sharding::zero0, true), exactly(2 * each * t * inputs));
  CHECK(cast(Sharding::zero2, true) == 0);
  CHECK(cast(Sharding::zero0, false) == 0);
}

TEST_CASE("the host reads for an adapter what its stack says", "[workloads]") {
  TinyStep step = adapted(Sharding::zero2);
  const auto reads = [&] {
    const std::vector<Unit> layer = units_of(step.input()).layers.front();
    int sum = 0;
    for (const Unit& unit : layer) sum += unit.stops.reads;
    return sum;
  };
  CHECK(reads() == 0);
  step.stack.adapters.reads = 2;
  CHECK(reads() == 7 * 2);
}

TEST_CASE("shared experts have adapters unless their stack leaves them out", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero2, tiny_model(8));
  step.strategy.lora = {4, LoraTargets::linear};
  constexpr double shared = 48;
  step.model.experts->shared_width = static_cast<std::int64_t>(shared);
  const double before = trained(step);
  step.stack.adapters.shared = false;
  CHECK_THAT(before - trained(step), exactly(3 * rank * 3 * (h + shared)));
}

TEST_CASE("stages have adapters of their own layers", "[workloads]") {
  TinyStep step = adapted(Sharding::zero1);
  step.model.layers = 4;
  const auto reduced = [&] {
    return sum_of(build_step(step.input(), Folding::automatic).graph, OpKind::collective,
                  Cause::gradient_reduce)
        .bytes;
  };
  const double alone = reduced();
  CHECK_THAT(alone, exactly(half * trained(step)));
  step.strategy.pipeline_parallel.size = 2;
  step.job.accumulation = 4;
  CHECK_THAT(reduced(), exactly(alone / 2));  // of rank 0, on the first of two stages
}

TEST_CASE("beside experts that ranks have of their own, each rank has its experts' adapters",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero1, tiny_model(8));
  step.strategy.lora = {4, LoraTargets::all};
  step.strategy.experts.kernel = MoeKernel::grouped;
  const Shares alone = step.rank().shares;
  step.strategy.experts.parallel = 4;
  const double attention = 3 * rank * attention_sides;
  const double of_experts = alone.trained - attention;
  const Shares dealt = step.rank().shares;
  CHECK_THAT(dealt.trained, exactly(attention + of_experts / 4));
  // Two ranks of eight have the same experts, and share what belongs to these.
  CHECK_THAT(dealt.updated, exactly(attention / 8 + of_experts / 4 / 2));
  // One beside all experts of a rank, of which there are two, and one beside queries, keys and
  // values.
  step.stack.adapters.one_beside_joined = true;
  const double joined = 3 * rank * (h + q + 2 * kv + q + h);
  CHECK_THAT(step.rank().shares.trained, exactly(joined + of_experts / 4 / 2));
}

TEST_CASE("modules around adapters and around matrices in four bits take the host in each pass",
          "[workloads]") {
  TinyStep step = adapted(Sharding::zero0, LoraTargets::linear, format_called("nf4"));
  step.stack.host.adapter_call.value = Seconds{70e-6};
  step.stack.host.unpack_call.value = Seconds{110e-6};
  const auto calls = [&](Phase phase) {
    double sum = 0;
    const std::vector<Unit> layer = units_of(step.input()).layers.front();
    for (const Unit& unit : layer)
      sum += module_calls(step.input(), {.unit = &unit, .phase = phase}).value;
    return sum * step.cluster.node.host.core_speed.number();
  };
  const double each = 7 * (70e-6 + 110e-6);  // q, k, v, o, gate, up and down
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    const double with = calls(phase);
    step.strategy.compiled = true;
    CHECK_THAT(with - calls(phase) + 1, exactly(each + 1));
    step.strategy.compiled = false;
  }
}

TEST_CASE("what is frozen in 32 bits is twice as large, and cast for each product", "[workloads]") {
  TinyStep step = adapted(Sharding::zero0);
  const auto frozen = [&] {
    const ModelUnits units = units_of(step.input());
    double bytes = half * units.embedding.elements();
    for (const Unit& unit : units.layers.front())
      if (!unit.trained) bytes += half * unit.elements();
    for (const Unit& unit : units.head) bytes += half * unit.elements();
    return bytes;
  };
  const auto cast = [&] {
    double bytes = 0;
    const std::vector<Unit> layer = units_of(step.input()).layers.front();
    for (const Unit& unit : layer)
      for (const KernelRow& row : unit.forward)
        if (row.name == "cast_weights") bytes += row.bytes;
    return bytes;
  };
  const double narrow = frozen();
  CHECK(cast() == 0);
  step.strategy.lora.frozen = LoraFrozen::fp32;
  CHECK_THAT(frozen(), exactly(2 * narrow));
  const double matrices = 2 * h * q + 2 * h * kv + 3 * h * w;
  CHECK_THAT(cast(), exactly((4 + 2) * matrices));
  // In four bits there is nothing to cast, but norms, embedding and head are as wide.
  step.strategy.lora.quantised = format_called("nf4");
  CHECK(cast() == 0);
  // An engine that shards has cast everything before.
  step.strategy.lora.quantised = WeightFormat{};
  step.strategy.sharding = Sharding::zero2;
  CHECK_THAT(frozen(), exactly(narrow));
}

namespace {

// The device's seconds of one layer's passes, and what it saves.
struct LayerWork {
  double seconds = 0, saved = 0, host = 0;
};

struct Sums {
  double flops = 0, launches = 0, unpacked = 0, elements = 0;
};

LayerWork work_of(const TinyStep& step) {
  LayerWork sum;
  const StepInput input = step.input();
  const std::vector<Unit> layer = units_of(input).layers.front();
  for (const Unit& unit : layer) {
    sum.seconds += device_time(step.cluster.gpu, step.stack, unit.forward, false).value +
                   device_time(step.cluster.gpu, step.stack, unit.backward, true).value;
    sum.saved += unit.memory.saved;
    for (const Phase phase : {Phase::forward, Phase::backward})
      sum.host += module_calls(input, {.unit = &unit, .phase = phase}).value;
  }
  return sum;
}

}  // namespace

TEST_CASE("each method and each way to run adapters costs what its code does", "[workloads]") {
  TinyStep step = adapted(Sharding::zero0);
  step.stack.host.adapter_call.value = Seconds{70e-6};
  const LayerWork plain = work_of(step);
  SECTION("DoRA takes more than LoRA") {
    step.strategy.lora.method = adapter_called("dora");
    const LayerWork dora = work_of(step);
    CHECK(dora.seconds > plain.seconds);
    CHECK(dora.saved > plain.saved);
    CHECK(dora.host > plain.host);
  }
  SECTION("DoRA multiplies frozen weights once more where there is dropout alone") {
    const auto of_dropout = [&](const char* method) {
      step.strategy.lora.method = adapter_called(method);
      step.strategy.lora.dropout = 0;
      const double without = work_of(step).seconds;
      step.strategy.lora.dropout = 0.1;
      return work_of(step).seconds - without;
    };
    const double lora = of_dropout("lora");
    CHECK(of_dropout("dora") > 1.5 * lora);
  }
  SECTION("LoRA out of its file is LoRA") {
    step.strategy.lora.method = adapter_called("lora");
    CHECK(work_of(step).seconds == plain.seconds);
  }
  SECTION("a vector beside a matrix has no product") {
    step.strategy.lora.method = adapter_called("ia3");
    CHECK_THAT(trained(step), exactly(3 * (q + 2 * kv + h + 2 * w + h)));
    CHECK(work_of(step).seconds < plain.seconds);
  }
  SECTION("in one function with the matrices they are no slower") {
    step.strategy.lora.kernels = AdapterKernels::fused;
    const LayerWork fused = work_of(step);
    CHECK(fused.seconds <= plain.seconds);
    CHECK(fused.host < plain.host);
  }
  SECTION("dropout writes a mask and a copy of each input, and keeps both") {
    step.strategy.lora.dropout = 0.1;
    const LayerWork dropped = work_of(step);
    CHECK(dropped.seconds > plain.seconds);
    CHECK(dropped.saved > plain.saved);
    step.strategy.lora.dropout = 0.2;
    CHECK(work_of(step).seconds == dropped.seconds);
  }
  SECTION("adapters in 32 bits cost more than in 16, cast or not") {
    step.strategy.lora.type = AdapterType::autocast;
    const LayerWork cast = work_of(step);
    step.strategy.lora.type = AdapterType::fp32;
    const LayerWork wide = work_of(step);
    CHECK(plain.seconds < cast.seconds);
    CHECK(plain.seconds < wide.seconds);
    CHECK(cast.saved < wide.saved);
  }
}

TEST_CASE("no format needs more memory for weights than 16 bits", "[workloads]") {
  for (const char* name :
       {"nf4", "nf4_single", "fp4", "gptq", "gptq_triton", "awq", "hqq", "int8"}) {
    CAPTURE(name);
    TinyStep step = adapted(Sharding::zero0);
    const auto held = [&] {
      double bytes = 0;
      const std::vector<Unit> layer = units_of(step.input()).layers.front();
      for (const Unit& unit : layer) bytes += half * unit.elements();
      return bytes;
    };
    const double plain = held();
    const LayerWork before = work_of(step);
    step.strategy.lora.quantised = format_called(name);
    CHECK(held() < plain);
    CHECK(work_of(step).seconds > before.seconds);
  }
}

TEST_CASE("functions of older releases save inputs, and a loop that names logits keeps them",
          "[workloads]") {
  TinyStep step = adapted(Sharding::zero0);
  step.strategy.checkpointing = Checkpointing::none;
  step.strategy.lora.quantised = format_called("nf4");
  const auto saved = [&] { return work_of(step).saved; };
  const auto passing = [&] { return units_of(step.input()).head.back().memory.forward; };
  const double before = saved(), of_loss = passing();
  step.strategy.lora.saves_inputs = true;
  const double tokens = load_of(step.model, step.job, 0).tokens;
  // The input of queries, keys and values, that of the output, of gate and up, and of down.
  CHECK_THAT(saved() - before, exactly(half * tokens * (h + q + h + w)));
  CHECK_THAT(passing(), exactly(of_loss));
  step.stack.holds_logits = true;
  const double layers = static_cast<double>(step.model.layers);
  step.strategy.cross_entropy = CrossEntropy::kernel;  // which holds nothing beside the logits
  CHECK_THAT(passing(), exactly(layers * half * tokens * (h + q + h + w)));
  step.job.packed = false;  // and rows of before are shorter
  step.job.documents.mean = static_cast<double>(step.job.sequence) / 4;
  CHECK_THAT(passing(), exactly(layers * half * tokens * (h + q + h + w) / 4));
}

TEST_CASE("a stack may multiply queries, keys and values at once", "[workloads]") {
  TinyStep step = adapted(Sharding::zero0);
  step.strategy.lora.quantised = format_called("nf4");
  const auto sum = [&] {
    Sums found;
    const std::vector<Unit> layer = units_of(step.input()).layers.front();
    for (const Unit& unit : layer) {
      found.flops += flops_of(unit.forward) + flops_of(unit.backward);
      found.launches += launches_of(unit.forward) + launches_of(unit.backward);
      found.unpacked += unit.unpacked;
      found.elements += unit.elements();
    }
    return found;
  };
  const Sums apart = sum();
  step.stack.joins_projections = true;
  const Sums joined = sum();
  CHECK_THAT(joined.flops, exactly(apart.flops));
  CHECK_THAT(joined.elements, exactly(apart.elements));
  CHECK_THAT(joined.unpacked, exactly(apart.unpacked - 2));
  CHECK_THAT(apart.launches - joined.launches,
             exactly(2.0 * 2 * (1 + 2)));  // product and unpacking
}

TEST_CASE("a stack may store the head as other frozen matrices, and cast what it unpacks",
          "[workloads]") {
  TinyStep step = adapted(Sharding::zero0);
  step.strategy.lora.quantised = format_called("nf4");
  const auto head = [&] { return units_of(step.input()).head.back(); };
  const Unit plain = head();
  step.stack.adapters.packs_head = true;
  const Unit packed = head();
  CHECK_THAT(packed.elements(),
             exactly(plain.elements() * step.strategy.lora.quantised.bytes / half));
  CHECK_THAT(packed.memory.forward - plain.memory.forward, exactly(half * plain.elements()));
  const double before = work_of(step).seconds;
  step.stack.adapters.casts_unpacked = true;
  CHECK_THAT(head().memory.forward - plain.memory.forward, exactly(2 * half * plain.elements()));
  CHECK(work_of(step).seconds > before);
}

TEST_CASE("under peft's wrap policy each matrix of an adapter is gathered by itself",
          "[workloads]") {
  TinyStep step = adapted(Sharding::fsdp);
  step.strategy.fsdp.version = 1;
  const auto gathers = [&](Cause cause) {
    return sum_of(build_step(step.input(), Folding::automatic).graph, OpKind::collective, cause);
  };
  step.strategy.lora.kernels = AdapterKernels::fused;  // these are no units of FSDP
  const Sum few = gathers(Cause::gather_bytes);
  step.strategy.lora.kernels = AdapterKernels::modules;
  step.strategy.fsdp.adapter_units = true;
  const Sum many = gathers(Cause::gather_bytes);
  CHECK(many.count >= few.count + 3 * 7 * 2 * 2);  // layers, adapters, matrices, passes
  CHECK_THAT(gathers(Cause::gradient_reduce).bytes, exactly(4 * trained(step)));
}

TEST_CASE("one adapter stands beside matrices that are one, unless some of them have none",
          "[workloads]") {
  TinyStep step = adapted(Sharding::zero1);
  step.stack.adapters.one_beside_joined = true;
  const double attention = (h + q + 2 * kv) + (q + h), forward = (h + 2 * w) + (w + h);
  CHECK_THAT(trained(step), exactly(3 * rank * (attention + forward)));
  step.strategy.lora.modules = {"q_proj", "v_proj"};
  CHECK_THAT(trained(step), exactly(3 * rank * ((h + q) + (h + kv))));
}

TEST_CASE("beside modules of bitsandbytes autocast casts the weights of adapters alone",
          "[workloads]") {
  const auto bytes = [](bool uncast, bool cloned, std::string_view name) {
    WeightFormat format = format_called("nf4");
    format.uncast = uncast;
    format.cloned = cloned;
    TinyStep step = adapted(Sharding::zero0, LoraTargets::linear, format);
    step.stack.adapters.casts = true;
    double sum = 0;
    const StepInput input = step.input();  // which holds the names of kernels
    const std::vector<Unit> layer = units_of(input).layers.front();
    for (const Unit& unit : layer)
      for (const KernelRow& row : unit.forward)
        if (row.name == name) sum += row.bytes;
    return sum;
  };
  const double inputs = 3 * h + q + 2 * h + w, results = q + 2 * kv + h + 2 * w + h;
  CHECK(bytes(false, false, "lora_cast") >= 12 * t * inputs);
  CHECK_THAT(bytes(true, false, "lora_cast"), exactly(6 * rank * linear_sides));
  CHECK(bytes(true, false, "clone") == 0);
  CHECK_THAT(bytes(true, true, "clone"), exactly(4 * t * results));
}

TEST_CASE("one flat tensor of trained and frozen weights has gradients of both", "[workloads]") {
  TinyStep step = adapted(Sharding::fsdp);
  const double frozen = backward_flops(step);
  step.strategy.fsdp.version = 1;
  CHECK(backward_flops(step) > 1.5 * frozen);
  const OpGraph graph = build_step(step.input(), Folding::automatic).graph;
  CHECK(sum_of(graph, OpKind::collective, Cause::gradient_reduce).bytes > 10 * trained(step));
}

TEST_CASE("embedding and head may be trained beside adapters", "[workloads]") {
  TinyStep step = adapted(Sharding::zero0);
  step.strategy.lora.embedding = step.strategy.lora.head = true;
  const ModelUnits units = units_of(step.input());
  CHECK(units.embedding.trained);
  CHECK(units.head.back().trained);
  CHECK_FALSE(units.head.front().trained);
}
