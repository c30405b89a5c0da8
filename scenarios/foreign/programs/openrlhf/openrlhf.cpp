#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/grpo_source.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

// A program of it, and what a step of it does in the words of a scenario.
struct OpenRlhfTraining {
  std::string_view program, method;
  bool reference = false;
  int epochs = 1;  // its default
};
constexpr std::array trainings{OpenRlhfTraining{"openrlhf.cli.train_sft", "sft", false, 2},
                               OpenRlhfTraining{"openrlhf.cli.train_dpo", "dpo", true},
                               OpenRlhfTraining{"openrlhf.cli.train_rm", "reward"}};

class OpenRlhfReader {
 public:
  OpenRlhfReader(const SourceQuestion& question, const Document& source, std::string_view table)
      : question_(question), source_(question, source, "OpenRLHF", table) {}

  Translation read(const OpenRlhfTraining& training) {
    labels_ = training.method == "reward";
    pairs_ = training.method == "dpo" || labels_;
    assume_model(question_, source_.root(), key("pretrain"), source_.result());
    assume_machine(question_, source_.root(), source_.result(), gpus_of(question_));
    source_.look_around();
    const bool liger = on("use_liger_kernel");
    put_stack_of(source_, liger ? "stacks_with_liger" : "stacks", key("use_liger_kernel"),
                 liger ? "OpenRLHF with Liger's kernels" : "OpenRLHF");
    read_job(training);
    read_sharding();
    read_kernels(liger);
    read_adapter();
    read_parallel();
    read_saves();
    return source_.finish();
  }

  // Reads reinforcement with engines, its learners under DeepSpeed.
  Translation read_reinforcement() {
    reinforces_ = true;
    assume_model(question_, source_.root(), key("pretrain"), source_.result());
    const Groups groups = read_groups();
    assume_machine(question_, source_.root(), source_.result(), machine_of(groups));
    source_.look_around();
    const bool liger = on("use_liger_kernel");
    put_stack_of(source_, liger ? "stacks_with_liger" : "stacks", key("use_liger_kernel"),
                 liger ? "OpenRLHF with Liger's kernels" : "OpenRLHF");
    source_.put("recipe", "openrlhf-ray", "", "how its trainer runs a step");
    source_.put("job.method", "grpo", key("advantage_estimator"));
    source_.put("job.deepspeed_zpg", "1", "", "no second copy of the parameters");
    put_groups(groups);
    read_filter(on("async_train"));
    read_answers();
    read_rollouts();
    read_sharding();
    read_kernels(liger);
    if (source_.whole(key("lora_rank"), 0, 0, most_lora_rank) > 0)
      source_.without(key("lora_rank"), "adapters; the whole model is trained");
    read_parallel();
    assume_responses(source_);
    source_.put_mapped();
    return source_.finish();
  }

 private:
  // GPUs of each model, and of all engines; 0: on those of another, or not there.
  struct Groups {
    std::int64_t actor = 0, reference = 0, critic = 0, reward = 0, engines = 0;
    bool together = false;  // all of them in turn on the actor's
    bool has_critic = false, has_reward = false, has_reference = false;

    std::int64_t all() const { return actor + reference + critic + reward + engines; }
  };

  std::int64_t gpus_of_group(std::string_view name) {
    return whole(fmt::format("{}_num_nodes", name), 1, 1 << 13) *
           whole(fmt::format("{}_num_gpus_per_node", name), 8, 1 << 10);
  }

  Groups read_groups() {
    Groups groups;
    const bool scored_elsewhere = !source_.text(key("remote_rm_url")).empty() ||
                                  !source_.text(key("agent_func_path")).empty();
    const std::string estimator = source_.text(key("advantage_estimator"), "gae");
    groups.has_critic = estimator == "gae";
    groups.has_reward = !scored_elsewhere;
    groups.has_reference = source_.number(key("init_kl_coef"), 0.01, 0, 1e6) > 0;
    groups.together = on("colocate_all_models") && !on("async_train");
    groups.actor = gpus_of_group("actor");
    const std::int64_t reference = gpus_of_group("ref"), critic = gpus_of_group("critic"),
                       reward = gpus_of_group("reward");
    const std::int64_t engines =
        whole("vllm_num_engines", 1, most_ranks) * whole("vllm_tensor_parallel_size", 1, 1 << 10);
    const bool beside_actor = on("colocate_actor_ref"),
               beside_critic = on("colocate_critic_reward");
    if (groups.together) return groups;
    groups.engines = engines;
    if (on("colocate_all_models")) return groups;
    if (groups.has_reference && !beside_actor) groups.reference = reference;
    if (groups.has_critic) groups.critic = critic;
    if (groups.has_reward && !(groups.has_critic && beside_critic)) groups.reward = reward;
    return groups;
  }

  GpusOfSource machine_of(const Groups& groups) {
    GpusOfSource machine{.gpus = groups.all(),
                         .why = "the models' GPUs and the engines' make so many"};
    if (!groups.together) return machine;
    machine.nodes = whole("actor_num_nodes", 1, 1 << 13);
    if (source_.says(key("actor_num_gpus_per_node"))) machine.each = machine.gpus / machine.nodes;
    return machine;
  }

  void put_groups(const Groups& groups) {
    const std::string together = key("colocate_all_models");
    source_.put("job.layout", groups.together ? "colocated" : "separate", together);
    source_.put("job.critic", groups.has_critic, key("advantage_estimator"));
    if (groups.has_critic)
      source_.put("job.reward_model", groups.has_reward, key("remote_rm_url"));
    else if (groups.has_reward)
      source_.without(key("reward_pretrain"),
                      "a reward model without a critic: rewards take no time");
    source_.put("job.load_ref_policy", groups.has_reference, key("init_kl_coef"));
    if (groups.has_reference && on("ref_reward_offload"))
      source_.put("job.park_reference", true, key("ref_reward_offload"));
    for (const std::string_view model : {"critic_pretrain", "reward_pretrain"}) {
      const std::string said = source_.text(key(model));
      const bool there = model.starts_with("critic") ? groups.has_critic : groups.has_reward;
      if (there && !said.empty() && said != source_.text(key("pretrain")))
        source_.note(fmt::format("{}: {} is counted as large as the policy", key(model), said));
    }
    if (groups.together) {
      source_.put("job.park_learners", on("deepspeed_enable_sleep"), key("deepspeed_enable_sleep"));
      const bool sleeps = on("vllm_enable_sleep");
      source_.put("job.vllm_sleep_level", sleeps ? "1" : "0", key("vllm_enable_sleep"),
                  sleeps ? "" : "engines keep their memory while GPUs learn");
      return;
    }
    for (const std::string_view name : {"deepspeed_enable_sleep", "vllm_enable_sleep"}) on(name);
    source_.put("job.learner_gpus", groups.actor, key("actor_num_gpus_per_node"));
    source_.put("job.vllm_num_engines", whole("vllm_num_engines", 1, most_ranks),
                key("vllm_num_engines"));
    if (groups.reference + groups.critic + groups.reward > 0)
      source_.note(
          fmt::format("models beside the policy work on its GPUs; the {} that the script has for "
                      "them stand idle",
                      groups.reference + groups.critic + groups.reward));
    const std::int64_t ahead = whole("async_queue_size", 1, 1000);
    source_.put("job.async_steps", on("async_train") ? std::to_string(ahead) : "0",
                key("async_train"));
  }

  // Groups whose answers are all right or all wrong are put aside, and others asked for.
  void read_filter(bool runs_ahead) {
    if (!on("dynamic_filtering")) return;
    if (runs_ahead && whole("async_queue_size", 1, 1000) > 1)
      source_.put("job.active_sampling", true, key("dynamic_filtering"));
    else
      source_.without(key("dynamic_filtering"),
                      "no group is put aside; --set job.oversampling=N asks for more answers");
  }

  // Reads one limit for prompt and answer together, or one for each.
  void read_answers() {
    std::int64_t prompt = whole("prompt_max_len", 1024, most_tokens);
    std::int64_t answer = whole("generate_max_len", 1024, most_tokens);
    if (source_.says(key("max_len")) && !source_.says("prompt_max_len")) {
      const std::int64_t both = std::max<std::int64_t>(whole("max_len", 2048, most_tokens), 2);
      const bool said = source_.says(key("generate_max_len"));
      prompt = said && answer < both ? both - answer : std::clamp<std::int64_t>(both / 4, 1, 1024);
      answer = std::min(said ? answer : both, both - prompt);
      source_.result().assumptions.push_back(
          {"length of prompts", fmt::format("up to {} tokens", prompt),
           fmt::format("{} limits prompt and response together", key("max_len")),
           "--set job.max_prompt_token_length=N --set job.response_length=N"});
    }
    source_.put("job.max_prompt_token_length", prompt,
                source_.says("prompt_max_len") ? "prompt_max_len" : "");
    source_.put("job.response_length", answer, key("generate_max_len"));
    read_micro_batches(prompt + answer);
  }

  // Reads the micro-batch: so many rows, behind each other or padded to the longest of them; or as
  // many as have so many tokens, of all GPUs that share a row (openrlhf/utils/seqlen_balancing.py).
  void read_micro_batches(std::int64_t longest) {
    const std::int64_t rows = whole("micro_train_batch_size", 4, most_rows),
                       tokens = whole("train_max_tokens_per_gpu", 16192, most_tokens),
                       shared = whole("ring_attn_size", 1, most_ranks) *
                                whole("ds_tensor_parallel_size", 1, most_ranks);
    const bool dynamic = on("use_dynamic_batch"), packs = on("packing_samples") || dynamic;
    const std::string rows_key = key("micro_train_batch_size");
    if (dynamic)
      source_.put("job.pack_length", std::max(tokens * shared, longest),
                  key("train_max_tokens_per_gpu"));
    else if (packs)
      source_.put("job.pack_rows", rows, rows_key);
    else
      source_.put("job.pack_length", rows * longest, rows_key,
                  fmt::format("{} rows of {} tokens", rows, longest));
    source_.put("job.batching", packs ? "shares" : "rows",
                key(dynamic ? "use_dynamic_batch" : "packing_samples"));
  }

  void read_rollouts() {
    const std::int64_t prompts = whole("rollout_batch_size", 1024, most_tokens),
                       samples = whole("n_samples_per_prompt", 1, most_tokens);
    source_.put("job.num_unique_prompts_rollout", prompts, key("rollout_batch_size"));
    source_.put("job.num_samples_per_prompt_rollout", samples, key("n_samples_per_prompt"));
    put_updates(source_, prompts * samples, whole("train_batch_size", 128, most_tokens),
                key("train_batch_size"));
  }

  // Returns the name of an argument in this file: it differs between releases before and after the
  // names with dots.
  std::string key(std::string_view old) {
    const Table renamed = source_.facts().table("renamed");
    if (source_.says(old) || !renamed.has(old)) return std::string(old);
    std::string other = renamed.text(old);
    return source_.says(other) ? other : std::string(old);
  }
  bool on(std::string_view old) { return source_.on(key(old)); }
  std::int64_t whole(std::string_view old, std::int64_t fallback, std::int64_t most) {
    return source_.whole(key(old), fallback, 1, most);
  }

  void read_job(const OpenRlhfTraining& training) {
    source_.put("job.method", std::string(training.method), "");
    if (pairs_ && !labels_) source_.put("job.reference_model", training.reference, "");
    source_.put("job.sequence", whole("max_len", 2048, 1 << 24), key("max_len"));
    source_.put("job.micro_batch", whole("micro_train_batch_size", 8, most_rows),
                key("micro_train_batch_size"));
    source_.put("job.global_batch", whole("train_batch_size", 128, 1 << 30),
                key("train_batch_size"));
    const bool packs = on("packing_samples");
    source_.put("job.packing", false, key("packing_samples"),
                packs ? "rows stand behind each other without padding; none is filled up" : "");
    const double epochs = source_.number(key("max_epochs"), training.epochs, 0.001, 1e6);
    source_.put("job.epochs", fmt::format("{}", epochs), key("max_epochs"));
    DataOfSource data{.packed = false, .pairs = pairs_, .epochs = epochs};
    data.padding = packs ? Padding::none : Padding::longest;
    const std::string padding_key = key("packing_samples");
    data.padding_key = padding_key;
    assume_data(question_, data, source_.result());
  }

  // Reads the sharding as get_train_ds_config() tells DeepSpeed.
  void read_sharding() {
    const std::string stage_key = key("zero_stage");
    std::string stage = source_.text(stage_key, "2");
    if (stage == "2moe") {
      source_.note(
          "zero_stage: 2moe is stage 2 with a moe block, which models of Hugging Face do not heed: "
          "experts run as the model's code has them");
      stage = "2";
    }
    const std::vector<std::string> stages{"0", "1", "2", "3"};
    if (std::find(stages.begin(), stages.end(), stage) == stages.end())
      return source_.problem(stage_key,
                             fmt::format("expected 0, 1, 2, 2moe or 3, found \"{}\"", stage));
    sharding_ = {.sharded = stage != "0", .stage_3 = stage == "3"};
    source_.put("strategy.zero", stage, stage_key);
    if (on("overlap_comm"))
      source_.put("strategy.zero_optimization.overlap_comm", true, key("overlap_comm"));
    const std::int64_t group = whole("zpg", 1, 1 << 20);
    const auto& cluster = source_.around().cluster;
    if (group > 1 && sharding_.stage_3 && cluster && cluster->ranks() < group)
      source_.note(fmt::format("zpg: {} of {} GPUs are no group, and there is no second copy",
                               group, std::uint32_t{cluster->ranks()}));
    else if (group > 1 && sharding_.stage_3)
      source_.put("strategy.zero_optimization.zero_hpz_partition_size", group, key("zpg"));
    else if (group > 1)
      source_.note("zpg works with stage 3 only; DeepSpeed does not look at it below");
    if (sharding_.stage_3)
      put_leaf_modules(source_, true, stage_key, "blocks of experts are marked as leaf modules");
    sharding_.optimizer_on_host = on("adam_offload");
    if (sharding_.optimizer_on_host)
      source_.put("strategy.offload.optimizer", "cpu", key("adam_offload"));
    put_optimizer(source_, key("optimizer"),
                  in_small_letters(source_.text(key("optimizer"), "adamw")), sharding_);
    const std::string type = source_.text(key("grad_accum_dtype"));
    if (type == "fp32" || type == "bf16" || type == "fp16")
      source_.put("strategy.gradient_dtype", type == "fp32" ? "fp32" : "bf16",
                  key("grad_accum_dtype"));
    else if (!type.empty())
      source_.problem(key("grad_accum_dtype"),
                      fmt::format("expected fp32, bf16 or fp16, found \"{}\"", type));
  }

  void read_kernels(bool liger) {
    const bool full = on("gradient_checkpointing");
    source_.put("strategy.checkpointing", full ? "full" : "none", key("gradient_checkpointing"));
    if (full && on("gradient_checkpointing_use_reentrant"))
      source_.put("strategy.reentrant", true, key("gradient_checkpointing_use_reentrant"));
    const std::string named = source_.text(key("attn_implementation"));
    const bool flash = source_.on("flash_attn");
    if (reinforces_ && named.empty())
      source_.put("strategy.attention", "flash", key("attn_implementation"), "the usual one");
    else if (!named.empty())
      put_attention(source_, key("attn_implementation"), named, false);
    else
      source_.put("strategy.attention", flash || on("packing_samples") ? "flash" : "eager",
                  flash || !on("packing_samples") ? "flash_attn" : key("packing_samples"),
                  flash                   ? ""
                  : on("packing_samples") ? "needs it"
                                          : "the usual one");
    if (!labels_)
      source_.put("strategy.cross_entropy", "logits", "",
                  "log-probabilities are taken from logits in 32 bits");
    if (liger && !labels_)
      source_.note("the trainer takes logits, so that Liger's kernel of the loss is not called");
    put_experts(source_, "");
  }

  void read_adapter() {
    const std::int64_t rank = source_.whole(key("lora_rank"), 0, 0, most_lora_rank);
    if (rank == 0) return;
    const std::string dropout = key("lora_dropout");
    put_adapter(source_, {.rank_key = "lora_rank",
                          .modules_key = "target_modules",
                          .rank = rank,
                          .modules = words_at(source_, key("target_modules")),
                          .usual_modules = "all-linear",
                          .format = bitsandbytes_format(on("load_in_4bit") ? 4 : 0),
                          .format_key = "load_in_4bit",
                          .dropout_key = dropout});
  }

  void read_parallel() {
    if (const std::int64_t ring = whole("ring_attn_size", 1, most_ranks); ring > 1)
      put_contiguous_ring(source_, ring, key("ring_attn_size"));
    if (const std::int64_t tensor = whole("ds_tensor_parallel_size", 1, most_ranks); tensor > 1) {
      source_.put("strategy.tensor_parallel.size", tensor, key("ds_tensor_parallel_size"));
      source_.put("strategy.tensor_parallel.sequence", false, key("ds_tensor_parallel_size"),
                  "DeepSpeed divides matrices, not tokens");
    }
  }

  void read_saves() {
    const double steps = source_.number(key("save_steps"), -1, -1, 1e12);
    const auto& cluster = source_.around().cluster;
    if (steps < 1 || (cluster && cluster->node.count(PartKind::nvme) == 0)) return;
    const bool weights = on("save_hf_ckpt"), states = !on("disable_ds_ckpt");
    if (!weights && !states) return;
    source_.put("job.save.every", fmt::format("{:.0f}", steps), key("save_steps"));
    source_.put("job.save.weights", weights, key("save_hf_ckpt"));
    source_.put("job.save.states", states, key("disable_ds_ckpt"));
  }

  const SourceQuestion& question_;
  MappedSource source_;
  ShardingFacts sharding_{};
  bool pairs_ = false;
  bool labels_ = false;  // a head of one number
  bool reinforces_ = false;
};

}  // namespace

Translation translate_openrlhf(const SourceQuestion& question, const Document& source) {
  const std::string program =
      question.launch == nullptr ? "openrlhf.cli.train_sft" : question.launch->program;
  constexpr std::string_view reinforcement = "openrlhf.cli.train_ppo_ray";
  if (program == reinforcement)
    return OpenRlhfReader(question, source, "programs/openrlhf/openrlhf-ppo").read_reinforcement();
  for (const OpenRlhfTraining& each : trainings)
    if (each.program == program)
      return OpenRlhfReader(question, source, "programs/openrlhf/openrlhf").read(each);
  std::vector<std::string> known{std::string(reinforcement)};
  for (const OpenRlhfTraining& each : trainings) known.emplace_back(each.program);
  throw UserError({{question.file, question.launch->line, "",
                    fmt::format("{} is not read yet; expected {}", program, one_of(known))}});
}

}  // namespace stepsim
