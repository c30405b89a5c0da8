#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/programs/megatron/megatron.hpp"
#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/grpo_source.hpp"
#include "scenarios/foreign/table/named_models.hpp"

namespace stepsim {
namespace {

constexpr std::string_view prompts_flag = "rollout-batch-size",
                           samples_flag = "n-samples-per-prompt",
                           answer_key = "rollout-max-response-len";

// GPUs that learn and GPUs that answer: the same in turn, or each group its own.
struct SlimeGroups {
  bool together = false;
  std::int64_t actor = 0, engines = 0, critic = 0, of_engine = 1, nodes = 0;
  std::int64_t each = 0;  // of every node, where it is said

  std::int64_t all() const {
    return together ? std::max(actor, engines) : actor + engines + critic;
  }
};

SlimeGroups read_slime_groups(MappedSource& source) {
  const std::int64_t nodes = source.whole("actor-num-nodes", 1, 1, 1 << 13),
                     gpus = source.whole("actor-num-gpus-per-node", 8, 1, 1 << 10);
  const std::int64_t critics = source.whole("critic-num-nodes", nodes, 1, 1 << 13) *
                               source.whole("critic-num-gpus-per-node", gpus, 1, 1 << 10);
  const bool own_critic =
      source.says("critic-num-nodes") || source.says("critic-num-gpus-per-node");
  SlimeGroups groups{.together = source.on("colocate"),
                     .actor = nodes * gpus,
                     .of_engine = source.whole("rollout-num-gpus-per-engine", 1, 1, 1 << 10)};
  groups.engines = source.whole("rollout-num-gpus", groups.together ? groups.actor : 0, 0, 1 << 20);
  if (groups.together) {
    groups.nodes = groups.actor >= groups.engines ? nodes : 0;
    if (groups.nodes > 0 && source.says("actor-num-gpus-per-node")) groups.each = gpus;
    return groups;
  }
  const bool supervised = source.text("loss-type") == "sft_loss";
  if (groups.engines == 0 && !supervised)
    source.problem("rollout-num-gpus",
                   "is missing: engines have GPUs of their own without colocate");
  if (source.text("advantage-estimator") == "ppo" && own_critic) groups.critic = critics;
  const std::int64_t of_node = source.whole("num-gpus-per-node", 8, 1, 1 << 10);
  if (groups.all() % of_node == 0) groups.nodes = groups.all() / of_node;
  return groups;
}

// There is one limit for each, or one for both.
struct SlimeLengths {
  std::int64_t prompt = 0, answer = 0;
};
SlimeLengths read_slime_lengths(MappedSource& source) {
  constexpr std::int64_t usual_prompt = 1024, usual_answer = 8192;
  const std::int64_t both = source.whole("rollout-max-context-len", 0, 2, most_tokens);
  SlimeLengths lengths{.prompt = source.whole("rollout-max-prompt-len", 0, 1, most_tokens),
                       .answer = source.whole(answer_key, 0, 1, most_tokens)};
  const bool said = lengths.prompt > 0;
  if (lengths.answer == 0) lengths.answer = both > 0 ? both - 1 : usual_answer;
  if (!said && both > lengths.answer)
    lengths.prompt = std::min(both - lengths.answer, usual_prompt);
  else if (!said)
    lengths.prompt = usual_prompt;
  if (both > 0)
    lengths.answer = std::max<std::int64_t>(1, std::min(lengths.answer, both - lengths.prompt));
  if (!said)
    source.result().assumptions.push_back(
        {"length of prompts", fmt::format("up to {} tokens", lengths.prompt),
         "the file does not limit them", "--set rollout-max-prompt-len=N"});
  return lengths;
}

// The model that engines load, where it is known; else the one that Megatron's arguments describe.
void put_slime_model(MappedSource& source, const SlimeLengths& lengths) {
  const SourceQuestion& question = source.question();
  const std::string said = source.text("hf-checkpoint");
  const bool described = source.says("num-layers");
  if (question.decides("model")) return;
  if (!described || (!said.empty() && find_named_model(question.data, said, question.file)))
    return source.put_model("hf-checkpoint");
  source.put("model", described_model(source, lengths.prompt + lengths.answer), "num-layers");
}

void put_slime_groups(MappedSource& source, const SlimeGroups& groups) {
  source.put("job.layout", groups.together ? "colocated" : "separate", "colocate");
  source.put("job.vllm_tensor_parallel_size", groups.of_engine, "rollout-num-gpus-per-engine");
  if (groups.together) {
    source.put("job.park_learners", source.on("offload-train", !source.on("no-offload-train")),
               source.says("no-offload-train") ? "no-offload-train" : "colocate");
    if (source.on("no-offload-rollout"))
      source.put("job.vllm_sleep_level", "0", "no-offload-rollout");
    return;
  }
  source.put("job.learner_gpus", groups.actor, "actor-num-gpus-per-node");
  source.put("job.vllm_num_engines", std::max<std::int64_t>(1, groups.engines / groups.of_engine),
             "rollout-num-gpus");
  if (groups.critic > 0) source.put("job.critic_gpus", groups.critic, "critic-num-gpus-per-node");
  const Launch* launch = source.question().launch;
  const bool ahead = launch != nullptr && launch->program.ends_with("train_async.py");
  source.put("job.async_steps", ahead ? "1" : "0", "",
             ahead ? "train_async.py begins the next answers before it trains" : "in turn");
  source.put("job.inflight_updates", false, "", "answers are waited for before weights change");
}

void read_slime_method(MappedSource& source, std::int64_t updates) {
  constexpr std::string_view key = "advantage-estimator", loss = "loss-type";
  const std::string said = source.choice(key, "grpo"), kind = source.text(loss, "policy_loss");
  if (kind == "sft_loss")
    source.problem(loss,
                   "sft_loss: supervised training of slime is not read yet, as a step takes "
                   "rows of any length; expected policy_loss");
  source.put("job.method", "grpo", key);
  if (said == "ppo") source.put("job.critic", true, key);
  // actor.py: can_reuse_log_probs_in_loss
  const bool apart = source.number("kl-coef", 0, -1e6, 1e6) != 0,
             from_engines = source.on("use-rollout-logprobs");
  const bool mismatch = source.on("get-mismatch-metrics"), distils = source.on("use-opd");
  const bool again = updates > 1 || said == "gspo" || said == "ppo" || apart || mismatch || distils;
  source.put("job.always_score", again, "global-batch-size",
             again ? "" : "log-probabilities of the update itself are taken");
  if (from_engines && !mismatch) source.put("job.use_vllm_logprobs", true, "use-rollout-logprobs");
  const bool compared = source.on("use-kl-loss") || apart;
  source.put("job.load_ref_policy", compared, apart ? "kl-coef" : "use-kl-loss");
  if (compared) {
    source.put("job.park_reference", true, "use-kl-loss", "it waits on the host");
    source.put("job.swap_reference", true, "use-kl-loss", "and takes the policy's place");
  }
}

std::int64_t read_slime_batch(MappedSource& source) {
  const std::int64_t prompts = source.whole(prompts_flag, 0, 1, most_tokens),
                     samples = source.whole(samples_flag, 1, 1, most_tokens),
                     parts = source.whole("num-steps-per-rollout", 0, 1, most_tokens),
                     batch = source.whole("global-batch-size", 0, 1, most_tokens);
  if (prompts == 0) source.problem(prompts_flag, "is missing");
  source.put("job.num_unique_prompts_rollout", prompts, prompts_flag);
  source.put("job.num_samples_per_prompt_rollout", samples, samples_flag);
  const std::int64_t all = std::max<std::int64_t>(1, prompts * samples);
  const std::int64_t updates = parts > 0   ? parts
                               : batch > 0 ? std::max<std::int64_t>(1, all / batch)
                                           : 1;
  put_updates(source, all, all / updates,
              parts > 0 ? "num-steps-per-rollout" : "global-batch-size");
  const std::int64_t begun = source.whole("over-sampling-batch-size", prompts, 1, most_tokens);
  const Launch* launch = source.question().launch;
  const bool ahead = launch != nullptr && launch->program.ends_with("train_async.py");
  if (begun > prompts && prompts > 0 && !ahead) {
    source.put("job.oversampling",
               fmt::format("{}", static_cast<double>(begun) / static_cast<double>(prompts)),
               "over-sampling-batch-size");
    source.put("job.partial_rollouts", source.on("partial-rollout"), "partial-rollout");
  }
  if (source.says("dynamic-sampling-filter-path"))
    source.without("dynamic-sampling-filter-path",
                   "no group is put aside; --set job.zero_std_fraction=X with "
                   "job.filter_zero_std_samples=true counts such");
  if (const std::int64_t steps = source.whole("num-rollout", 0, 0, 1'000'000'000); steps > 0)
    source.put("job.total_episodes", steps * all, "num-rollout");
  return updates;
}

void put_slime_rows(MappedSource& source, const SlimeLengths& lengths,
                    const MegatronDegrees& degrees) {
  const std::int64_t tokens = source.whole("max-tokens-per-gpu", 0, 1, most_tokens),
                     rows = source.whole("micro-batch-size", 1, 1, most_rows),
                     longest = lengths.prompt + lengths.answer;
  source.put("job.max_prompt_token_length", lengths.prompt, "rollout-max-prompt-len");
  source.put("job.response_length", lengths.answer, answer_key);
  const bool dynamic = source.on("use-dynamic-batch-size");
  if (dynamic && tokens == 0)
    source.problem("max-tokens-per-gpu", "is missing: use-dynamic-batch-size needs it");
  if (dynamic)
    return source.put("job.pack_length", std::max(tokens * degrees.context, longest),
                      "max-tokens-per-gpu", "a longer answer has a micro-batch of its own");
  if (source.text("qkv-format", "thd") == "bshd") {
    source.put("job.batching", "rows", "qkv-format");
    return source.put("job.pack_length", rows * longest, "micro-batch-size");
  }
  source.put("job.pack_rows", rows, "micro-batch-size");
}

void put_slime_sync(MappedSource& source) {
  constexpr std::string_view way = "update-weight-transport", mode = "update-weight-mode";
  const std::int64_t bucket = source.whole("update-weight-buffer-size", 512LL << 20, 1, 1LL << 40);
  source.put("job.sync_bucket", fmt::format("{} B", bucket), "update-weight-buffer-size");
  if (source.text(way, "nccl") == "disk") source.put("job.sync_protocol", "files", way);
  if (source.text(mode, "full") != "full")
    source.without(mode, "all weights travel, not what has changed of them");
}

}  // namespace

Translation translate_slime(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "slime", "programs/slime/slime", NamesOfKeys::last_parts);
  const MegatronDegrees degrees = megatron_degrees(source);
  const SlimeGroups groups = read_slime_groups(source);
  const SlimeLengths lengths = read_slime_lengths(source);
  put_slime_model(source, lengths);
  assume_machine(question, source.root(), source.result(),
                 {.gpus = groups.all(),
                  .nodes = groups.nodes,
                  .why = groups.together ? "actor-num-nodes and actor-num-gpus-per-node say so"
                                         : "actor-num-nodes and rollout-num-gpus make so many",
                  .each = groups.each});
  source.look_around();
  source.put_stack();
  source.put("engine", "sglang", "");
  source.put("recipe", "slime", "", "how its trainer runs a step");
  source.put("job.deepspeed_zpg", "1", "", "no second copy of the parameters");
  put_slime_groups(source, groups);
  read_slime_method(source, read_slime_batch(source));
  put_slime_rows(source, lengths, degrees);
  put_slime_sync(source);
  put_megatron_division(source, degrees,
                        {.distributed = true,
                         .grouped = !source.says("num-layers"),
                         .halves = true,
                         .dispatcher = "alltoall"});
  assume_responses(source);
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
