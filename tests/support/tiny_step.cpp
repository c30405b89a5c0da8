#include "tests/support/tiny_step.hpp"

#include <algorithm>

#include "scenarios/scenario.hpp"
#include "sim/engine/own/replay.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

Gpu tiny_gpu() {
  Gpu gpu;
  gpu.name = "tiny-gpu";
  gpu.memory.capacity = gpu.memory.usable = made_up<Bytes>(80e9);
  gpu.peak.bf16 = made_up<FlopsPerSecond>(800e12);
  gpu.peak.tf32 = made_up<FlopsPerSecond>(400e12);
  gpu.host_launch.queue = made_up<Ratio>(1024);
  gpu.gemm = {.start = made_up<Seconds>(2e-6),
              .rate = made_up<FlopsPerSecond>(500e12),
              .bandwidth = made_up<BytesPerSecond>(2e12),
              .sustained = made_up<Ratio>(0.9),
              .fill = made_up<Ratio>(0),
              .small_tile = made_up<Ratio>(1),
              .unaligned = {},
              .grouped = {}};
  gpu.attention = {.flash = {.forward = made_up<FlopsPerSecond>(400e12),
                             .backward = made_up<FlopsPerSecond>(300e12),
                             .forward_overhead = made_up<Ratio>(0),
                             .backward_overhead = made_up<Ratio>(0),
                             .wide = made_up<Ratio>(1),
                             .backward_tail = {}},
                   .later = {},
                   .later_name = {},
                   .head_overhead = made_up<Ratio>(0),
                   .tail = made_up<Ratio>(0),
                   .settling = {}};
  gpu.elementwise = {
      .start = made_up<Seconds>(3e-6), .bandwidth = made_up<BytesPerSecond>(2e12), .cache = {}};
  return gpu;
}

Stack tiny_stack() {
  Stack stack;
  stack.name = "tiny-stack";
  stack.host = {.forward_launch = made_up<Seconds>(7e-6),
                .backward_launch = made_up<Seconds>(10e-6),
                .plain_launch = made_up<Seconds>(7e-6),
                .saved_hook = made_up<Seconds>(15e-6),
                .collective_launch = made_up<Seconds>(40e-6),
                .sync = made_up<Seconds>(30e-6),
                .module_call = made_up<Seconds>(0),
                .expert_call = made_up<Seconds>(0),
                .module_hook = made_up<Seconds>(500e-6),
                .gather_tensor = made_up<Seconds>(100e-6),
                .gradient_hook = made_up<Seconds>(80e-6),
                .partition_hook = made_up<Seconds>(150e-6),
                .reduce_calls = made_up<Seconds>(200e-6),
                .shard_group = made_up<Seconds>(800e-6),
                .shard_tensor = made_up<Seconds>(10e-6),
                .sub_group = made_up<Seconds>(300e-6),
                .update_tensor = made_up<Seconds>(40e-6),
                .kept_tensor = made_up<Seconds>(100e-6),
                .clear_visit = made_up<Seconds>(0.2e-6),
                .count_visit = made_up<Seconds>(3e-6),
                .repoint = made_up<Seconds>(5e-6),
                .step = made_up<Seconds>(1e-3),
                .batch = made_up<Seconds>(2e-3),
                .file_write = made_up<BytesPerSecond>(1e9),
                .file_read = made_up<BytesPerSecond>(2e9),
                .restart = made_up<Seconds>(60)};
  stack.kernels = {.gemm = made_up<Ratio>(1),
                   .attention = made_up<Ratio>(1),
                   .memory = made_up<Ratio>(1),
                   .grouped_gemm = made_up<Ratio>(0.5)};
  stack.attention_shares = {.efficient_forward = made_up<Ratio>(0.5),
                            .efficient_backward = made_up<Ratio>(0.4),
                            .masked_forward = made_up<Ratio>(0.6),
                            .masked_backward = made_up<Ratio>(0.7),
                            .flex_forward = made_up<Ratio>(0.9),
                            .flex_backward = made_up<Ratio>(0.8)};
  const Document operators = read_document(STEPSIM_SOURCE_DATA "/workloads/operators.yaml");
  stack.operators = read_operators(operators.root());
  stack.expert_shares = {.gather = made_up<Ratio>(0.8), .scatter = made_up<Ratio>(0.4)};
  const Document mixers = read_document(STEPSIM_SOURCE_DATA "/workloads/mixers.yaml");
  stack.mixers = read_mixers(mixers.root());
  stack.allocator_slack = made_up<Ratio>(0);
  return stack;
}

Cluster step_cluster(std::uint32_t nodes, std::uint32_t gpus) {
  Cluster cluster = tiny_cluster({.gpus = gpus, .nodes = nodes});
  const Gpu::Interference interference = cluster.gpu.interference;
  cluster.gpu = tiny_gpu();
  cluster.gpu.interference = interference;
  cluster.node.host.core_speed = made_up<Ratio>(1);
  cluster.node.host.pageable = made_up<Ratio>(0.5);
  cluster.node.host.cpu_adam = made_up<Seconds>(1);
  cluster.node.host.cpu_adam_bytes = made_up<Ratio>(28);
  return cluster;
}

bool involves(const OpGraph& graph, const Op& op, Rank rank) {
  if (op.pattern == no_pattern) return op.rank == rank;
  const std::vector<Rank>& members = graph.patterns()[index(op.pattern)].members;
  return std::find(members.begin(), members.end(), rank) != members.end();
}

Sum sum_if(const OpGraph& graph, const std::function<bool(const Op&)>& wanted) {
  Sum sum;
  for (const Op& op : graph.ops())
    if (wanted(op) && involves(graph, op, 0))
      sum = {sum.bytes + op.bytes.value, sum.count + 1, sum.seconds + op.seconds.value};
  return sum;
}

}  // namespace

Optimizer optimizer_called(std::string_view name) {
  const Document file = open_entry(source_data(), optimizer_shelf, name);
  return read_optimizer(file.root());
}

WeightFormat format_called(std::string_view name) {
  const Document file = open_entry(source_data(), format_shelf, name);
  return read_format(file.root());
}

AdapterMethod adapter_called(std::string_view name) {
  const Document file = open_entry(source_data(), adapter_shelf, name);
  return read_adapter_method(file.root());
}

Model tiny_model(std::int64_t experts) {
  Model model;
  model.name = "tiny";
  model.layers = 3;
  model.hidden = 64;
  model.vocabulary = 2000;
  model.longest_sequence = 1 << 20;
  model.attention.heads = 4;
  model.attention.kv_heads = 2;
  model.attention.head_dim = 16;
  model.feed_forward.width = 192;
  if (experts > 0) model.experts = Experts{.count = experts, .per_token = 2, .width = 32};
  return model;
}

TinyStep tiny_step(Sharding sharding, const Model& model, std::uint32_t nodes, std::uint32_t gpus) {
  TinyStep step{step_cluster(nodes, gpus), model, tiny_stack(), {}, {}};
  step.strategy.sharding = sharding;
  step.strategy.optimizer = optimizer_called("adamw");
  step.strategy.zero.overlap_comm = sharding == Sharding::zero3;
  step.strategy.zero.reduce_bucket = 20000;
  step.strategy.zero.prefetch_bucket = 10000;
  step.strategy.zero.persistence_threshold = 100;
  step.job.sequence = 128;
  return step;
}

std::vector<Variant> tiny_variants(std::uint32_t nodes, std::uint32_t gpus) {
  std::vector<Variant> list;
  const auto add = [&](std::string_view name, Sharding sharding, std::int64_t experts,
                       const std::function<void(TinyStep&)>& change) {
    TinyStep step = tiny_step(sharding, tiny_model(experts), nodes, gpus);
    change(step);
    list.push_back({name, std::move(step)});
  };
  const auto as_is = [](TinyStep&) {};
  const auto leaf = [](TinyStep& step) { step.strategy.zero.leaf_modules = true; };
  const auto no_reuse = [](TinyStep& step) {
    step.strategy.zero.max_reuse = step.strategy.zero.max_live = 0;
    step.strategy.zero.sub_group = 0;
  };
  const auto exchange = [](TinyStep& step) {
    step.strategy.experts.kernel = MoeKernel::tutel;
    step.strategy.experts.parallel = 4;
  };
  const auto host_adam = [](TinyStep& step) { step.strategy.optimizer_place = Offload::cpu; };
  const auto host_all = [&](TinyStep& step) {
    host_adam(step);
    step.strategy.parameter_place = Offload::cpu;
  };
  const auto preference = [](TinyStep& step) { step.job.method = Method::dpo; };
  const auto keep_all = [](TinyStep& step) {
    step.strategy.checkpointing = Checkpointing::none;
    step.job.accumulation = 2;
  };
  add("zero 0", Sharding::zero0, 0, as_is);
  add("zero 1", Sharding::zero1, 0, as_is);
  add("zero 2", Sharding::zero2, 0, keep_all);
  add("zero 2, experts exchanged", Sharding::zero2, 8, exchange);
  add("zero 2, optimizer on the host", Sharding::zero2, 0, host_adam);
  add("zero 3", Sharding::zero3, 0, keep_all);
  add("zero 3, preferences", Sharding::zero3, 0, preference);
  add("zero 3, expert by expert", Sharding::zero3, 8, as_is);
  add("zero 3, leaf modules", Sharding::zero3, 8, leaf);
  add("zero 3, leaf modules around a kernel", Sharding::zero3, 8, [&](TinyStep& step) {
    leaf(step);
    step.strategy.experts.kernel = MoeKernel::tutel;
  });
  add("zero 3, nothing kept", Sharding::zero3, 8, no_reuse);
  add("zero 3, a loop over slices", Sharding::zero3, 8,
      [](TinyStep& step) { step.strategy.experts.layout = ExpertLayout::fused; });
  add("zero 2, DeepSpeed's experts, none dropped", Sharding::zero2, 8, [&](TinyStep& step) {
    exchange(step);
    step.strategy.experts.kernel = MoeKernel::deepspeed;
    step.strategy.experts.capacity_factor = 0;
    step.strategy.experts.skew = 0.5;
  });
  add("zero 2, activations on the host", Sharding::zero2, 0, [](TinyStep& step) {
    step.strategy.activation_place = Offload::cpu;
    step.strategy.checkpointing = Checkpointing::operators;
    step.job.accumulation = 2;
  });
  add("zero 3, all on the host", Sharding::zero3, 0, host_all);
  add("fsdp, all on the host", Sharding::fsdp, 0, [&](TinyStep& step) {
    host_all(step);
    step.job.accumulation = 2;
  });
  add("fsdp 1, all on the host", Sharding::fsdp, 8, [&](TinyStep& step) {
    host_all(step);
    step.strategy.fsdp.version = 1;
  });
  add("zero 3, half of the optimizer on the host", Sharding::zero3, 0, [&](TinyStep& step) {
    host_adam(step);
    step.strategy.offload.ratio = 0.5;
    step.strategy.zero.sub_group = 5000;
  });
  add("zero 3, all on drives", Sharding::zero3, 0, [](TinyStep& step) {
    step.strategy.optimizer_place = step.strategy.parameter_place = Offload::nvme;
    step.strategy.offload = {.pipeline_read = true,
                             .pipeline_write = true,
                             .optimizer_buffers = 12,
                             .buffer_size = 50000,
                             .max_in_cpu = 5000};
    step.strategy.zero.sub_group = 5000;
    step.job.accumulation = 2;
  });
  const auto whole_matrices = [](TinyStep& step) {
    step.strategy.optimizer = optimizer_called("muon");
  };
  add("zero 0, whole matrices", Sharding::zero0, 0, whole_matrices);
  add("zero 2, whole matrices", Sharding::zero2, 0, whole_matrices);
  add("zero 3, whole matrices", Sharding::zero3, 0, whole_matrices);
  add("fsdp, whole matrices", Sharding::fsdp, 0, whole_matrices);
  add("fsdp", Sharding::fsdp, 0, as_is);
  add("fsdp, accumulating", Sharding::fsdp, 0, [&](TinyStep& step) {
    keep_all(step);
    step.strategy.fsdp.sync_each_batch = false;
  });
  add("fsdp, flat parameters", Sharding::fsdp, 0, [](TinyStep& step) {
    step.strategy.fsdp.version = 1;
    step.strategy.fsdp.root_group = true;
  });
  const auto tensor = [](TinyStep& step) { step.strategy.tensor_parallel.size = 2; };
  add("zero 1, tensors shared", Sharding::zero1, 0, tensor);
  add("zero 2, tensors shared, whole norms", Sharding::zero2, 0, [&](TinyStep& step) {
    tensor(step);
    step.strategy.tensor_parallel.sequence = false;
  });
  add("fsdp, tensors and sequences shared", Sharding::fsdp, 0, [&](TinyStep& step) {
    tensor(step);
    step.strategy.sequence_parallel.ring = 2;
  });
  add("zero 3, heads for sequences", Sharding::zero3, 0,
      [](TinyStep& step) { step.strategy.sequence_parallel.ulysses = 4; });
  add("zero 3, secondary partition in 8 and 4 bits", Sharding::zero3, 0, [&](TinyStep& step) {
    step.strategy.zero.hpz = gpus;
    step.strategy.zero.quantized_weights = step.strategy.zero.quantized_gradients = true;
  });
  const auto grouped = [](TinyStep& step) {
    step.strategy.experts.kernel = MoeKernel::grouped;
    step.strategy.experts.parallel = 4;
    step.strategy.experts.skew = 0.5;
  };
  add("fsdp, experts exchanged", Sharding::fsdp, 8, grouped);
  add("zero 1, experts exchanged, tensors shared", Sharding::zero1, 8, [&](TinyStep& step) {
    grouped(step);
    tensor(step);
    step.strategy.experts.parallel = 2;
  });
  add("fsdp, whole experts, tensors shared", Sharding::fsdp, 8, [&](TinyStep& step) {
    grouped(step);
    tensor(step);
    step.strategy.experts.tensor = 1;
    step.strategy.experts.kernel = MoeKernel::padded;
  });
  add("hsdp", Sharding::hsdp, 0,
      [&](TinyStep& step) { step.strategy.fsdp.shard = nodes > 1 ? gpus : gpus / 2; });
  return list;
}

Elements elements_of(const TinyStep& step) {
  Elements result;
  const double threshold = step.strategy.zero.persistence_threshold;
  const auto add = [&](const std::vector<Module>& modules, double& large) {
    for (const Module& module : modules)
      for (const Tensor& tensor : module.tensors) {
        const double elements = static_cast<double>(tensor.elements);
        result.total += elements;
        (elements > threshold ? large : result.small) += elements;
        if (tensor.kind == TensorClass::expert) result.experts += elements;
      }
  };
  add(outer_modules(step.model), result.outer);
  for (std::int64_t layer = 0; layer < step.model.layers; ++layer)
    add(layer_modules(step.model, layer), result.inner);
  return result;
}

Sum sum_of(const OpGraph& graph, OpKind kind, Cause cause) {
  return sum_if(graph, [&](const Op& op) { return op.kind == kind && op.cause == cause; });
}

Sum sum_named(const OpGraph& graph, OpKind kind, std::string_view name) {
  return sum_if(graph, [&](const Op& op) {
    return op.kind == kind && graph.names()[index(op.name)] == name;
  });
}

Replayed play(const TinyStep& step, Folding folding) {
  Replayed result{build_step(step.input(), folding), {}};
  result.trace = replay(result.program.traffic.folded.platform, result.program.graph);
  return result;
}

double seconds_of(const TinyStep& step, Folding folding) {
  return numbers_from_worker(
             [&] { return std::vector<double>{play(step, folding).trace.makespan.value}; })
      .front();
}

}  // namespace stepsim
