#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/programs/verl/verl.hpp"
#include "scenarios/foreign/write/foreign_lines.hpp"
#include "scenarios/foreign/write/writers.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

void say_verl_batch(ForeignLines& lines) {
  const Grpo& grpo = *lines.scenario().grpo;
  const std::int64_t shared = lines.scenario().strategy.sequence_parallel.ranks();
  lines.say(actor_key("ppo_mini_batch_size"),
            std::max<std::int64_t>(grpo.prompts / grpo.mini_batches, 1));
  lines.say(actor_key("use_dynamic_bsz"), grpo.pack_rows == 0);
  if (grpo.pack_rows > 0)
    lines.say(actor_key("ppo_micro_batch_size_per_gpu"), grpo.pack_rows);
  else
    lines.say(actor_key("ppo_max_token_len_per_gpu"), grpo.pack_length / shared);
  if (grpo.round_prompts > 0) {
    lines.say("data.gen_batch_size", grpo.round_prompts);
    lines.say("algorithm.filter_groups.enable", true);
  }
  if (grpo.total_episodes > 0)
    lines.say("trainer.total_training_steps",
              static_cast<std::int64_t>(grpo.total_episodes) / (grpo.prompts * grpo.samples));
}

void say_models(ForeignLines& lines) {
  const Grpo& grpo = *lines.scenario().grpo;
  lines.say("actor_rollout_ref.model.path", lines.model());
  lines.say(actor_key("use_kl_loss"), grpo.reference_model);
  if (grpo.reference_model)
    lines.say("actor_rollout_ref.ref.fsdp_config.param_offload", grpo.park_reference);
  lines.say(actor_key("fsdp_config.param_offload"), grpo.park_learners);
  lines.say(actor_key("fsdp_config.optimizer_offload"), grpo.park_learners);
  const Table engines = lines.facts().table("engines");
  std::string engine = "vllm";
  for (const std::string& theirs : engines.keys())
    if (engines.text(theirs) == lines.scenario().engine->name) engine = theirs;
  lines.say("actor_rollout_ref.rollout.name", engine);
  if (grpo.sync_bucket)
    lines.say("actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",
              static_cast<std::int64_t>(std::max(grpo.sync_bucket->value / (1 << 20), 1.0)));
  if (lines.is("job.vllm_quantization", "fp8"))
    lines.say("actor_rollout_ref.rollout.quantization", "fp8");
}

void say_learners(ForeignLines& lines, const Mesh& mesh) {
  const std::string kind = lines.value("strategy.zero");
  const bool sharded = kind == "fsdp" || kind == "hsdp" || kind == "3";
  lines.say(actor_key("strategy"), sharded ? "fsdp2" : "megatron");
  if (sharded && lines.is("strategy.master_weights", "false"))
    lines.say(actor_key("fsdp_config.model_dtype"), "bfloat16");
  if (kind == "hsdp") lines.say(actor_key("fsdp_config.fsdp_size"), std::int64_t{mesh.shard});
  if (lines.is("strategy.fsdp.reshard_after_forward", "false"))
    lines.say(actor_key("fsdp_config.reshard_after_forward"), false);
  const std::string again = lines.value("strategy.checkpointing");
  if (sharded)
    lines.say("actor_rollout_ref.model.enable_gradient_checkpointing", again == "full");
  else if (again != "none")
    lines.say(actor_key("megatron.override_transformer_config.recompute_granularity"), again);
  const auto degree = [&](std::string_view key, std::int64_t size) {
    if (!sharded) lines.say(actor_key(fmt::format("megatron.{}", key)), size);
  };
  degree("tensor_model_parallel_size", mesh.tensor);
  degree("context_parallel_size", mesh.ring);
  degree("pipeline_model_parallel_size", mesh.stages);
  degree("expert_model_parallel_size", lines.scenario().strategy.experts.parallel);
  if (lines.scenario().model.experts)
    degree("expert_tensor_parallel_size", expert_tensor_of(lines.scenario().strategy));
}

}  // namespace

std::string verl_text(const Catalogue& data, const Scenario& scenario) {
  ForeignLines lines(data, scenario, "programs/verl/verl");
  lines.say("algorithm.adv_estimator", "grpo");
  say_models(lines);
  say_verl_batch(lines);
  say_learners(lines, mesh_of(scenario.strategy, scenario.cluster));
  lines.say_mapped();
  lines.say("trainer.nnodes", std::int64_t{scenario.cluster.nodes});
  lines.say("trainer.n_gpus_per_node", std::int64_t{scenario.cluster.gpus_per_node()});
  return fmt::format(
      "python3 -m {}{}",
      scenario.grpo->round_prompts > 0 ? "recipe.dapo.main_dapo" : "verl.trainer.main_ppo",
      override_text(lines));
}

}  // namespace stepsim
