#include "tests/support/tiny_pipeline.hpp"

#include "tests/support/tiny_cluster.hpp"

namespace stepsim {
namespace {

constexpr double endless = 1e30;

void make_free(Stack::HostCosts& host) {
  for (Constant<Seconds>* each :
       {&host.forward_launch, &host.backward_launch, &host.plain_launch, &host.collective_launch,
        &host.sync, &host.gradient_hook, &host.reduce_calls, &host.shard_group, &host.shard_tensor,
        &host.repoint, &host.step})
    each->value = {0};
}

}  // namespace

TinyStep even_pipeline(const PipelineParallel& pipeline, std::int64_t micro_batches) {
  Model model = tiny_model();
  model.layers = pipeline.pieces();
  // A head that is next to nothing beside a layer.
  model.vocabulary = 1;
  model.hidden = 512;
  model.attention.head_dim = 128;
  model.feed_forward.width = 1536;
  TinyStep step = tiny_step(Sharding::zero1, model, 1, static_cast<std::uint32_t>(pipeline.size));
  step.strategy.pipeline_parallel = pipeline;
  step.strategy.checkpointing = Checkpointing::none;
  step.job.accumulation = micro_batches;
  make_free(step.stack.host);
  Gpu gpu = step.cluster.gpu;
  step.cluster = tiny_cluster({.gpus = static_cast<std::uint32_t>(pipeline.size),
                               .link = endless,
                               .pcie = endless,
                               .port = endless,
                               .launch = 0,
                               .step = 0});
  gpu.gemm.start.value = gpu.elementwise.start.value = {0};
  gpu.gemm.bandwidth.value = gpu.elementwise.bandwidth.value = {endless};
  gpu.gemm.rate.value = {1e9};
  gpu.attention.flash.forward.value = gpu.attention.flash.backward.value = {endless};
  gpu.interference = step.cluster.gpu.interference;
  step.cluster.gpu = gpu;
  step.cluster.node.host.core_speed.value = {1};
  return step;
}

std::vector<Variant> tiny_pipelines() {
  std::vector<Variant> list;
  const auto add = [&](std::string_view name, Sharding sharding, std::int64_t experts,
                       const PipelineParallel& pipeline, const auto& change) {
    TinyStep step = tiny_step(sharding, tiny_model(experts), 2, 4);
    step.strategy.pipeline_parallel = pipeline;
    step.job.accumulation = 4;
    step.strategy.fsdp.reshard_after_forward = step.strategy.fsdp.sync_each_batch = false;
    change(step);
    list.push_back({name, std::move(step)});
  };
  const auto as_is = [](TinyStep&) {};
  using enum PipelineSchedule;
  const PipelineParallel uneven{2, one_forward_one_backward, 1, {2, 1}};
  const PipelineParallel pieces{2, interleaved, 2, {0, 1, 1, 1}};
  const PipelineParallel all_first{2, gpipe, 1, {1, 2}};
  const PipelineParallel ends{4, one_forward_one_backward, 1, {0, 1, 2, 0}};
  add("1f1b", Sharding::zero1, 0, uneven, as_is);
  add("1f1b over nodes, whose host waits for messages", Sharding::zero1, 0, ends,
      [](TinyStep& step) {
        step.stack.stops_for_stages = true;
        step.strategy.gradients = GradientType::fp32;
        step.strategy.checkpointing = Checkpointing::none;
      });
  add("gpipe, states on all ranks", Sharding::zero0, 0, all_first, as_is);
  add("gpipe, whose host waits for messages", Sharding::zero1, 0, all_first,
      [](TinyStep& step) { step.stack.stops_for_stages = true; });
  add("interleaved, shared embedding", Sharding::zero1, 0, pieces,
      [](TinyStep& step) { step.model.tied_embeddings = true; });
  add("1f1b, tensors shared", Sharding::zero1, 0, uneven, [](TinyStep& step) {
    step.strategy.tensor_parallel.size = 2;
    step.stack.stops_for_stages = true;
  });
  add("1f1b, a ring", Sharding::zero1, 0, uneven,
      [](TinyStep& step) { step.strategy.sequence_parallel.ring = 2; });
  add("interleaved, experts exchanged", Sharding::zero1, 8, pieces, [](TinyStep& step) {
    step.strategy.experts.kernel = MoeKernel::grouped;
    step.strategy.experts.parallel = 4;
  });
  add("1f1b, fsdp", Sharding::fsdp, 0, uneven, as_is);
  add("interleaved, fsdp, gradients of each micro-batch reduced", Sharding::fsdp, 0, pieces,
      [](TinyStep& step) { step.strategy.fsdp.sync_each_batch = true; });
  add("interleaved, fsdp, experts exchanged", Sharding::fsdp, 8, pieces, [](TinyStep& step) {
    step.strategy.experts.kernel = MoeKernel::grouped;
    step.strategy.experts.parallel = 2;
  });
  const PipelineParallel folded{2, zbv, 2, {0, 1, 1, 1}};
  add("zb_h1, gradients in fp32", Sharding::zero1, 0, {2, zb_h1, 1, {2, 1}},
      [](TinyStep& step) { step.strategy.gradients = GradientType::fp32; });
  add("zb_h1, interleaved, fsdp, all computed again", Sharding::fsdp, 0,
      {2, zb_h1, 2, {0, 1, 1, 1}},
      [](TinyStep& step) { step.strategy.checkpointing = Checkpointing::full; });
  add("zbv, shared embedding", Sharding::zero1, 0, folded,
      [](TinyStep& step) { step.model.tied_embeddings = true; });
  add("v_half, tensors and tokens shared", Sharding::zero1, 0, {2, v_half, 2, {0, 1, 1, 1}},
      [](TinyStep& step) {
        step.strategy.tensor_parallel.size = 2;
        step.strategy.tensor_parallel.sequence = true;
        step.stack.tensor_layers = TensorLayers::overlapped;
      });
  add("v_min, a ring, one buffer of gradients", Sharding::zero1, 0, {2, v_min, 2, {1, 1, 1, 0}},
      [](TinyStep& step) {
        step.strategy.sequence_parallel.ring = 2;
        step.strategy.distributed.used = true;
        step.strategy.gradients = GradientType::fp32;
      });
  add("dualpipe, shared embedding", Sharding::zero1, 0, {2, dualpipe, 1, {2, 1}},
      [](TinyStep& step) { step.model.tied_embeddings = true; });
  add("dualpipe over nodes, fsdp, experts exchanged", Sharding::fsdp, 8,
      {4, dualpipe, 1, {0, 1, 2, 0}}, [](TinyStep& step) {
        step.strategy.experts.kernel = MoeKernel::grouped;
        step.strategy.experts.parallel = 2;
        step.job.accumulation = 8;
      });
  add("dualpipe_v, experts exchanged meanwhile", Sharding::zero1, 8,
      {2, dualpipe_v, 2, {0, 1, 1, 1}}, [](TinyStep& step) {
        step.strategy.experts.kernel = MoeKernel::grouped;
        step.strategy.experts.parallel = 4;
        step.strategy.experts.overlaps = step.strategy.experts.delays_weights = true;
        step.strategy.checkpointing = Checkpointing::none;
      });
  add("fewer micro-batches than stages", Sharding::zero1, 0, ends, [](TinyStep& step) {
    step.stack.stops_for_stages = true;
    step.job.accumulation = 2;
  });
  return list;
}

}  // namespace stepsim
