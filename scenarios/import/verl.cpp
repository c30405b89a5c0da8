#include "scenarios/import/verl.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/import/assumed.hpp"
#include "scenarios/import/grpo_source.hpp"
#include "scenarios/import/mapped_source.hpp"

namespace stepsim {
namespace {

std::string actor_megatron(std::string_view key) {
  return actor_key(fmt::format("megatron.{}", key));
}

GpusOfSource read_machine(MappedSource& source) {
  const std::int64_t nodes = source.whole("trainer.nnodes", 1, 1, 1 << 13),
                     gpus = source.whole("trainer.n_gpus_per_node", 8, 1, 1 << 10);
  return {.gpus = nodes * gpus, .nodes = nodes, .why = "trainer.nnodes and n_gpus_per_node say so"};
}

// Advantages that compare answers to the same prompt, or to all; or those of a critic, which every
// GPU has beside the policy.
void read_verl_method(MappedSource& source) {
  constexpr std::string_view key = "algorithm.adv_estimator";
  const std::vector<std::string> known{"gae",
                                       "grpo",
                                       "grpo_passk",
                                       "grpo_vectorized",
                                       "rloo",
                                       "rloo_vectorized",
                                       "reinforce_plus_plus",
                                       "reinforce_plus_plus_baseline",
                                       "opo",
                                       "gpg",
                                       "optimal_token_baseline"};
  const std::string said = source.text(key, "gae");
  if (std::find(known.begin(), known.end(), said) == known.end())
    source.problem(key, fmt::format("expected {}, found \"{}\"{}", one_of(known), said,
                                    did_you_mean(said, known)));
  const bool scored = source.on("reward_model.enable");
  if (said != "gae") {
    if (scored)
      source.without("reward_model.enable",
                     "a reward model without a critic; job.reward_latency says what it takes");
    return;
  }
  source.put("job.critic", "true", key);
  if (scored) source.put("job.reward_model", "true", "reward_model.enable");
  const std::string policy = source.text("actor_rollout_ref.model.path");
  for (const std::string_view other : {"critic.model.path", "reward_model.model.path"})
    if (const std::string model = source.text(other);
        !model.empty() && model != policy && (scored || other.starts_with("critic")))
      source.without(other, fmt::format("{}: counted as large as the policy", model));
}

void read_engines(MappedSource& source) {
  constexpr std::string_view key = "actor_rollout_ref.rollout.name",
                             quantised = "actor_rollout_ref.rollout.quantization";
  const std::string said = source.text(key, "vllm");
  if (said != "vllm") source.without(key, fmt::format("{} is counted as vllm", said));
  if (const std::string type = source.text(quantised); type == "fp8")
    source.put("job.vllm_quantization", "fp8", quantised);
  else if (!type.empty())
    source.without(quantised, fmt::format("{}: weights of engines in 16 bits", type));
}

void read_verl_batch(MappedSource& source) {
  const std::int64_t prompts = source.whole("data.train_batch_size", 1024, 1, most_tokens),
                     samples = source.whole("actor_rollout_ref.rollout.n", 1, 1, most_tokens);
  const std::int64_t longest = source.whole("data.max_prompt_length", 512, 1, most_tokens) +
                               source.whole("data.max_response_length", 512, 1, most_tokens);
  const std::int64_t shared =
      source.whole(actor_key("ulysses_sequence_parallel_size"), 1, 1, most_ranks);
  put_updates(source, prompts, source.whole(actor_key("ppo_mini_batch_size"), 256, 1, most_tokens),
              actor_key("ppo_mini_batch_size"));
  const std::string tokens_key = actor_key("ppo_max_token_len_per_gpu"),
                    rows_key = actor_key("ppo_micro_batch_size_per_gpu");
  const std::int64_t tokens = source.whole(tokens_key, 16384, 1, most_tokens),
                     rows = source.whole(rows_key, 1, 1, most_tokens);
  source.text(actor_key("ppo_micro_batch_size"));
  if (source.on(actor_key("use_dynamic_bsz"))) {
    source.put("job.pack_length", std::to_string(std::max(tokens * shared, longest)), tokens_key);
  } else {
    source.put("job.pack_length", std::to_string(rows * longest), rows_key,
               fmt::format("{} rows of {} tokens", rows, longest));
  }
  if (const std::int64_t steps = source.whole("trainer.total_training_steps", 0, 0, 1'000'000'000);
      steps > 0)
    source.put("job.total_episodes", std::to_string(steps * prompts * samples),
               "trainer.total_training_steps");
}

// A frozen model runs along where something is compared with it.
void read_reference(MappedSource& source) {
  const bool in_loss = source.on(actor_key("use_kl_loss")),
             in_reward = source.on("algorithm.use_kl_in_reward");
  const bool parked = source.on("actor_rollout_ref.ref.fsdp_config.param_offload") ||
                      source.on("actor_rollout_ref.ref.megatron.param_offload");
  source.put("job.load_ref_policy", in_loss || in_reward ? "true" : "false",
             in_loss || !in_reward ? actor_key("use_kl_loss") : "algorithm.use_kl_in_reward");
  if (parked && (in_loss || in_reward))
    source.put("job.park_reference", "true", "actor_rollout_ref.ref.fsdp_config.param_offload");
}

void read_verl_learners(MappedSource& source, bool megatron) {
  const std::string block = megatron ? "megatron" : "fsdp_config";
  bool parked = false;
  for (const std::string_view kind : {"fsdp_config", "megatron"})
    for (const std::string_view what : {"param_offload", "optimizer_offload"})
      parked = source.on(actor_key(fmt::format("{}.{}", kind, what))) || parked;
  source.put("job.park_learners", parked ? "true" : "false",
             actor_key(fmt::format("{}.optimizer_offload", block)));
  const auto degree = [&](std::string_view key) {
    return source.whole(actor_megatron(fmt::format("{}_model_parallel_size", key)), 1, 1,
                        most_ranks);
  };
  const LearnersOfSource learners{
      .tensor = degree("tensor"),
      .context = source.whole(actor_megatron("context_parallel_size"), 1, 1, most_ranks),
      .stages = degree("pipeline"),
      .experts = degree("expert"),
      .sequence = source.on(actor_megatron("sequence_parallel"), true),
      .first_layers = source.whole(
          actor_megatron("override_transformer_config.num_layers_in_first_pipeline_stage"), 0, 0,
          most_ranks),
      .last_layers = source.whole(
          actor_megatron("override_transformer_config.num_layers_in_last_pipeline_stage"), 0, 0,
          most_ranks),
      .tensor_key = actor_megatron("tensor_model_parallel_size"),
      .context_key = actor_megatron("context_parallel_size"),
      .stages_key = actor_megatron("pipeline_model_parallel_size"),
      .experts_key = actor_megatron("expert_model_parallel_size"),
      .sequence_key = actor_megatron("sequence_parallel")};
  const std::int64_t shard = source.whole(actor_key("fsdp_config.fsdp_size"), -1, -1, 1 << 20);
  const bool reshard = source.on(actor_key("fsdp_config.reshard_after_forward"), true);
  if (megatron) {
    source.put("strategy.zero", "1", actor_key("strategy"));
    return put_learners(source, learners);
  }
  const auto& cluster = source.around().cluster;
  const bool some = shard > 0 && (!cluster || shard < static_cast<std::int64_t>(cluster->ranks()));
  source.put("strategy.zero", some ? "hsdp" : "fsdp",
             some ? actor_key("fsdp_config.fsdp_size") : actor_key("strategy"));
  if (some)
    source.put("strategy.fsdp.shard", std::to_string(shard), actor_key("fsdp_config.fsdp_size"));
  if (!reshard)
    source.put("strategy.fsdp.reshard_after_forward", "false",
               actor_key("fsdp_config.reshard_after_forward"));
  source.put("strategy.cross_entropy", "in_place", "",
             "one kernel finds the probabilities of the tokens");
}

}  // namespace

std::string actor_key(std::string_view key) {
  return fmt::format("actor_rollout_ref.actor.{}", key);
}

Translation translate_verl(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "verl", "verl");
  const std::string settings = source.text("config-name");
  source.text("config-path");
  const bool named = settings.find("megatron") != std::string::npos;
  const bool megatron =
      source.text(actor_key("strategy"), named ? "megatron" : "fsdp") == "megatron";
  const GpusOfSource gpus = read_machine(source);
  source.put_model("actor_rollout_ref.model.path");
  assume_machine(question, source.root(), source.result(), gpus);
  source.look_around();
  source.put_stack(megatron ? "stacks_of_megatron" : "stacks");
  source.put("job.method", "grpo", "algorithm.adv_estimator");
  source.put("job.layout", "colocated", "", "every GPU generates and learns in turn");
  source.put("job.deepspeed_zpg", "1", "", "no second copy of the parameters");
  read_verl_method(source);
  read_engines(source);
  read_verl_batch(source);
  read_reference(source);
  read_verl_learners(source, megatron);
  if (source.whole("actor_rollout_ref.model.lora_rank", 0, 0, most_lora_rank) > 0)
    source.without("actor_rollout_ref.model.lora_rank", "adapters; the whole model is trained");
  assume_responses(source);
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
