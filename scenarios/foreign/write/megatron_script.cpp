#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/write/foreign_lines.hpp"
#include "scenarios/foreign/write/writers.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

void say_experts(ForeignLines& lines, const Model& model) {
  if (!model.experts) return;
  const Experts& experts = *model.experts;
  lines.say("num-experts", experts.count);
  lines.say("moe-router-topk", experts.per_token);
  lines.say("moe-ffn-hidden-size", experts.width);
  if (experts.shared_width > 0)
    lines.say("moe-shared-expert-intermediate-size", experts.shared_width);
  if (experts.first_dense > 0)
    lines.say("moe-layer-freq", fmt::format("'([0]*{}+[1]*{})'", experts.first_dense,
                                            model.layers - experts.first_dense));
  if (!lines.is("strategy.moe.kernel", "loop")) lines.say("moe-grouped-gemm", true);
  const bool deep = lines.is("strategy.moe.dispatcher", "deepep");
  const bool hybrid = lines.is("strategy.moe.dispatcher", "hybridep");
  lines.say("moe-token-dispatcher-type", deep || hybrid ? "flex" : "alltoall");
  if (deep) lines.say("moe-enable-deepep", true);
  if (hybrid) lines.say("moe-flex-dispatcher-backend", "hybridep");
  if (lines.is("strategy.moe.overlap", "true")) lines.say("overlap-moe-expert-parallel-comm", true);
  if (lines.is("strategy.moe.delay_weight_gradients", "true"))
    lines.say("delay-wgrad-compute", true);
  lines.say("expert-model-parallel-size", lines.scenario().strategy.experts.parallel);
  if (lines.scenario().strategy.experts.tensor > 0)
    lines.say("expert-tensor-parallel-size", lines.scenario().strategy.experts.tensor);
}

void say_attention(ForeignLines& lines, const Model& model) {
  const Attention& attention = model.attention;
  lines.say("num-attention-heads", attention.heads);
  if (attention.kv_heads != attention.heads && !attention.latent) {
    lines.say("group-query-attention", true);
    lines.say("num-query-groups", attention.kv_heads);
  }
  if (attention.latent) {
    const Latent& latent = *attention.latent;
    lines.say("multi-latent-attention", true);
    lines.say("kv-lora-rank", latent.width);
    if (latent.query_width > 0) lines.say("q-lora-rank", latent.query_width);
    lines.say("qk-head-dim", attention.head_dim - latent.rotary);
    lines.say("qk-pos-emb-head-dim", latent.rotary);
    lines.say("v-head-dim", latent.value);
  } else {
    lines.say("kv-channels", attention.head_dim);
  }
  if (attention.qk_norm != Attention::QkNorm::none) lines.say("qk-layernorm", true);
  if (attention.qkv_bias && !attention.output_bias) lines.say("add-qkv-bias", true);
}

void say_megatron_model(ForeignLines& lines) {
  const Model& model = lines.scenario().model;
  lines.say("num-layers", model.layers);
  lines.say("hidden-size", model.hidden);
  // If every layer has experts, their width stands here as well: it must not be 0.
  lines.say("ffn-hidden-size", model.feed_forward.width > 0 || !model.experts
                                   ? model.feed_forward.width
                                   : model.experts->width);
  say_attention(lines, model);
  lines.say("max-position-embeddings",
            std::max(model.longest_sequence, lines.scenario().job.sequence));
  lines.say("padded-vocab-size", model.vocabulary);
  if (model.positions == Positions::rotary) lines.say("position-embedding-type", "rope");
  if (!model.norm_bias) lines.say("normalization", "RMSNorm");
  if (model.feed_forward.gated) lines.say("swiglu", true);
  if (!model.feed_forward.bias) lines.say("disable-bias-linear", true);
  if (!model.tied_embeddings) lines.say("untie-embeddings-and-output-weights", true);
  say_experts(lines, model);
}

void say_sharding(ForeignLines& lines) {
  const std::string kind = lines.value("strategy.zero");
  if (!lines.scenario().strategy.precision.whole()) lines.say("bf16", true);
  if (kind == "1" || kind == "2" || kind == "3") lines.say("use-distributed-optimizer", true);
  if (kind == "fsdp" || kind == "hsdp") lines.say("use-torch-fsdp2", true);
  if (lines.is("strategy.gradient_dtype", "bf16")) lines.say("grad-reduce-in-bf16", true);
  if (lines.is("strategy.offload.optimizer", "cpu")) lines.say("optimizer-cpu-offload", true);
}

void say_precision(ForeignLines& lines) {
  const std::string recipe = lines.precision();
  if (recipe.empty()) return;
  const bool four = lines.scenario().strategy.precision.type == ProductType::fp4;
  lines.say(four ? "fp4-format" : "fp8-format", four ? "e2m1" : "hybrid");
  lines.say(four ? "fp4-recipe" : "fp8-recipe", recipe);
}

void say_recomputing(ForeignLines& lines) {
  const std::string kind = lines.value("strategy.checkpointing");
  if (kind == "selective") {
    lines.say("recompute-granularity", "selective");
    lines.say("recompute-modules", lines.value("strategy.recompute_modules"));
  } else if (kind == "full") {
    lines.say("recompute-granularity", "full");
    lines.say("recompute-method", "uniform");
    lines.say("recompute-num-layers", std::int64_t{1});
  }
}

// The split schedules are those of github.com/sail-sg/zero-bubble-pipeline-parallelism.
void say_megatron_schedule(ForeignLines& lines, const PipelineParallel& pipeline) {
  switch (pipeline.schedule) {
    case PipelineSchedule::zb_h1:
      lines.say("enable-zero-bubble", true);
      lines.say("zero-bubble-max-pending-backward", pipeline.size);
      break;
    case PipelineSchedule::zbv:
    case PipelineSchedule::v_half:
    case PipelineSchedule::v_min:
      lines.say("zero-bubble-v-schedule", true);
      lines.say("zero-bubble-v-schedule-mem-setup",
                pipeline.schedule == PipelineSchedule::zbv      ? "zb"
                : pipeline.schedule == PipelineSchedule::v_half ? "half"
                                                                : "min");
      break;
    default:
      if (pipeline.virtual_stages > 1)
        lines.say("num-virtual-stages-per-pipeline-rank", pipeline.virtual_stages);
  }
}

// Embedding and head in the place of a layer each, or the ends with layers of their own number.
void say_megatron_stages(ForeignLines& lines, const PipelineParallel& pipeline) {
  say_megatron_schedule(lines, pipeline);
  const std::vector<std::int64_t>& layers = pipeline.layers;
  if (layers.size() < 3) return;
  const std::int64_t between = layers[1];
  const bool even = std::all_of(layers.begin() + 1, layers.end() - 1,
                                [&](std::int64_t each) { return each == between; });
  if (!even) return;
  const auto fewer_by_one = [&](std::int64_t each) { return each + 1 == between; };
  const bool counted = (layers.front() == between || fewer_by_one(layers.front())) &&
                       (layers.back() == between || fewer_by_one(layers.back()));
  if (counted) {
    if (fewer_by_one(layers.front())) lines.say("account-for-embedding-in-pipeline-split", true);
    if (fewer_by_one(layers.back())) lines.say("account-for-loss-in-pipeline-split", true);
  } else if (pipeline.virtual_stages == 1) {
    lines.say("decoder-first-pipeline-num-layers", layers.front());
    lines.say("decoder-last-pipeline-num-layers", layers.back());
  }
}

void say_parallel(ForeignLines& lines, const Mesh& mesh) {
  if (lines.is("strategy.tensor_parallel.sequence", "true") && mesh.tensor > 1)
    lines.say("sequence-parallel", true);
  if (lines.is("strategy.tensor_parallel.async", "true") && mesh.tensor > 1)
    lines.say("tp-comm-overlap", true);
  if (mesh.sequence() > 1) {
    lines.say("context-parallel-size", std::int64_t{mesh.sequence()});
    lines.say("cp-comm-type", mesh.ulysses > 1 ? "a2a" : "p2p");
  }
  if (mesh.stages > 1) say_megatron_stages(lines, lines.scenario().strategy.pipeline_parallel);
}

}  // namespace

std::string megatron_text(const Catalogue& data, const Scenario& scenario) {
  ForeignLines lines(data, scenario, "programs/megatron/megatron");
  const Mesh mesh = mesh_of(scenario.strategy, scenario.cluster);
  say_megatron_model(lines);
  lines.say("seq-length", scenario.job.sequence);
  lines.say("micro-batch-size", scenario.job.micro_batch);
  lines.say("global-batch-size",
            scenario.job.micro_batch * scenario.job.accumulation * std::int64_t{mesh.data()});
  say_sharding(lines);
  say_precision(lines);
  say_recomputing(lines);
  say_parallel(lines, mesh);
  if (lines.number("job.save.every") > 0) {
    lines.say("save", "checkpoints");
    lines.say("save-interval", lines.value("job.save.every"));
  }
  lines.say_mapped();
  const Cluster& cluster = scenario.cluster;
  return fmt::format("torchrun --nproc_per_node {} --nnodes {} pretrain_gpt.py{}",
                     cluster.gpus_per_node(), cluster.nodes,
                     argument_text(lines, lines.facts().texts("flags")));
}

}  // namespace stepsim
