#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "scenarios/foreign/programs/megatron/megatron.hpp"
#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/grpo_source.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

// The files that this one goes on from; the one that all begin with stands in the table.
void read_defaults(MappedSource& source) {
  constexpr int longest_chain = 8;
  std::string said = source.text("defaults");
  if (said.starts_with('[')) said = first_listed(source.texts("defaults"));
  fs::path folder = fs::path(source.question().file).parent_path();
  for (int links = 0; !said.empty() && links < longest_chain; ++links) {
    const fs::path place = folder / said;
    std::error_code failed;
    if (!fs::is_regular_file(place, failed)) {
      if (place.filename() != "grpo_math_1B.yaml")
        source.problem("defaults",
                       fmt::format("no file {}, which this one goes on from", place.string()));
      return;
    }
    said = source.inherit(place.string());
    folder = place.parent_path();
  }
}

struct Machine {
  std::int64_t nodes = 1, gpus = 1;  // of each node
};

// Reads engines on GPUs of their own: whole nodes at the end, or some of a single node's.
void read_layout(MappedSource& source, const Machine& machine) {
  const std::string block = "policy.generation.colocated.";
  const bool colocated = source.on(block + "enabled", true);
  const std::int64_t nodes = source.whole(block + "resources.num_nodes", 0, 0, 1 << 13),
                     gpus = source.whole(block + "resources.gpus_per_node", 0, 0, 1 << 10);
  const bool ahead = source.on("grpo.async_grpo.enabled");
  const std::int64_t age = source.whole("grpo.async_grpo.max_trajectory_age_steps", 1, 0, 1000);
  const bool in_flight = source.on("grpo.async_grpo.in_flight_weight_updates");
  source.put("job.layout", colocated ? "colocated" : "separate", block + "enabled");
  source.put("recipe", "nemo-rl", "", "how its trainer runs a step");
  if (colocated) return;
  if (machine.nodes == 1) {
    source.put("job.num_learners_per_node", fmt::format("[{}]", machine.gpus - gpus),
               block + "resources.gpus_per_node");
  } else {
    std::string list;
    for (std::int64_t node = 0; node < machine.nodes - nodes; ++node)
      list += fmt::format("{}, ", machine.gpus);
    source.put("job.num_learners_per_node", fmt::format("[{}0]", list),
               block + "resources.num_nodes");
  }
  source.put("job.async_steps", ahead ? std::to_string(age) : "0", "grpo.async_grpo.enabled");
  source.put("job.inflight_updates", ahead && in_flight,
             "grpo.async_grpo.in_flight_weight_updates");
}

void read_lengths(MappedSource& source) {
  constexpr std::string_view key = "policy.max_total_sequence_length";
  const std::int64_t longest = source.whole(key, 512, 2, most_tokens),
                     rows = source.whole("policy.train_micro_batch_size", 4, 1, most_rows);
  const std::int64_t prompt = std::clamp<std::int64_t>(longest / 4, 1, 512);
  source.text("data.max_input_seq_length");
  const std::int64_t response = std::min(
      source.whole("policy.generation.max_new_tokens", longest, 1, most_tokens), longest - prompt);
  source.put("job.max_prompt_token_length", prompt, "", "taken");
  source.put("job.response_length", response, key);
  source.result().assumptions.push_back(
      {"length of prompts", fmt::format("up to {} tokens", prompt),
       "the file limits prompt and response together",
       "--set job.max_prompt_token_length=N --set job.response_length=N"});
  const bool packed = source.on("policy.sequence_packing.enabled", true),
             dynamic = source.on("policy.dynamic_batching.enabled");
  const std::string_view tokens_key = dynamic ? "policy.dynamic_batching.train_mb_tokens"
                                              : "policy.sequence_packing.train_mb_tokens";
  const std::int64_t tokens =
      packed || dynamic ? source.whole(tokens_key, rows * longest, 1, most_tokens) : rows * longest;
  source.put("job.pack_length", std::max(tokens, longest),
             source.says(tokens_key) ? tokens_key : "policy.train_micro_batch_size");
}

// Reads rounds as dynamic_sampling() of nemo_rl/algorithms/grpo.py plays them.
void read_nemo_rounds(MappedSource& source, std::int64_t prompts) {
  constexpr std::string_view filter_key = "grpo.use_dynamic_sampling",
                             factor_key = "grpo.batch_multiplier";
  const double factor = source.number(factor_key, 1, 0.01, 1000);
  const bool filters = source.on(filter_key), ahead = source.on("grpo.async_grpo.enabled");
  if (!filters && factor != 1)
    return source.problem(factor_key,
                          fmt::format("NeMo-RL refuses {} without {}: true", factor, filter_key));
  if (!filters) return;
  if (ahead)
    return source.without(filter_key,
                          "batches that are filled up with groups of differing rewards");
  put_rounds(source, static_cast<std::int64_t>(factor * static_cast<double>(prompts)),
             source.says(factor_key) ? factor_key : filter_key, filter_key);
}

void read_nemo_batch(MappedSource& source) {
  const std::int64_t prompts = source.whole("grpo.num_prompts_per_step", 32, 1, most_tokens),
                     samples = source.whole("grpo.num_generations_per_prompt", 16, 1, most_tokens);
  put_updates(source, prompts * samples,
              source.whole("policy.train_global_batch_size", 512, 1, most_tokens),
              "policy.train_global_batch_size");
  read_nemo_rounds(source, prompts);
  const double weight = source.number("loss_fn.reference_policy_kl_penalty", 0.01, 0, 1e6);
  source.put("job.load_ref_policy", weight > 0, "loss_fn.reference_policy_kl_penalty");
  if (source.on("loss_fn.force_on_policy_ratio"))
    source.put("job.always_score", false, "loss_fn.force_on_policy_ratio");
  if (const std::int64_t steps = source.whole("grpo.max_num_steps", 0, 0, 1'000'000'000);
      steps > 0 && steps < 1'000'000)
    source.put("job.total_episodes", steps * prompts * samples, "grpo.max_num_steps");
}

// Reads what gradients are summed in, who has states, and what travels beside computation.
void read_megatron_states(MappedSource& source, const std::string& block) {
  const std::string gradients = block + "distributed_data_parallel_config.",
                    shared_key = block + "optimizer.use_distributed_optimizer";
  const bool shared = source.on(shared_key, true);
  source.put("strategy.zero", shared ? "1" : "0", shared_key);
  const std::string type_key = gradients + "grad_reduce_in_fp32";
  source.put("strategy.gradient_dtype", source.on(type_key) ? "fp32" : "bf16", type_key);
  for (const std::string_view name : {"overlap_grad_reduce", "overlap_param_gather"})
    if (const bool beside = source.on(gradients + std::string(name), true); shared)
      source.put(fmt::format("strategy.distributed_optimizer.{}", name), beside,
                 gradients + std::string(name));
  // Its optimizer keeps moments in 16 bits only where it is the one that knows of types.
  const std::string moments = block + "optimizer.exp_avg_dtype",
                    aware = block + "optimizer.use_precision_aware_optimizer",
                    host = block + "optimizer.optimizer_cpu_offload",
                    share = block + "optimizer.optimizer_offload_fraction";
  const std::string type = source.text(moments, "float32");
  if (source.on(aware) && !type.ends_with("float32"))
    source.put("strategy.moment_dtype", "bf16", moments, type);
  const double part = source.number(share, 1, 0, 1);
  if (!source.on(host) || part == 0) return;
  if (source.whole(block + "pipeline_model_parallel_size", 1, 1, most_ranks) > 1)
    return source.without(host, "a pipeline with states on the host: they stay on the GPUs");
  source.put("strategy.offload.optimizer", "cpu", host);
  if (part < 1) source.without(share, "all states are on the host");
}

void read_nemo_recomputing(MappedSource& source, bool again) {
  const std::string block = "policy.megatron_cfg.";
  const std::string depth_key = block + "recompute_granularity";
  const std::string depth = source.text(depth_key, "full");
  put_recomputing(
      source,
      {.granularity =
           again && source.says(depth_key) ? depth_key : block + "activation_checkpointing",
       .method = block + "recompute_method",
       .layers = block + "recompute_num_layers",
       .modules = block + "recompute_modules"},
      again ? depth : "none");
}

constexpr std::string_view expert_tensor_key = "policy.megatron_cfg.expert_tensor_parallel_size";

// All its files begin with 1; null leaves it to Megatron, which divides experts as the rest.
std::int64_t expert_tensor_of(MappedSource& source, const std::string& tensor) {
  const std::vector<std::string> keys = source.keys_below("policy.megatron_cfg");
  const bool null = holds(keys, expert_tensor_key) && !source.says(expert_tensor_key);
  return null ? source.whole(tensor, 1, 1, most_ranks)
              : source.whole(expert_tensor_key, 1, 1, most_ranks);
}

void read_nemo_learners(MappedSource& source, bool megatron) {
  const std::string block = megatron ? "policy.megatron_cfg." : "policy.dtensor_cfg.";
  const auto key = [&](std::string_view name) { return fmt::format("{}{}", block, name); };
  const std::string tensor = key(megatron ? "tensor_model_parallel_size" : "tensor_parallel_size"),
                    experts = key(megatron ? "expert_model_parallel_size" : "expert_parallel_size"),
                    stages = key("pipeline_model_parallel_size");
  const bool again = source.on(key("activation_checkpointing"));
  if (megatron) {
    read_megatron_states(source, block);
    read_nemo_recomputing(source, again);
  } else {
    source.put("strategy.zero", "fsdp", key("enabled"));
    source.put("strategy.checkpointing", again ? "full" : "none", key("activation_checkpointing"));
  }
  const std::string recipe = source.text(key("fp8_cfg.fp8_recipe"), "blockwise");
  if (megatron && source.on(key("fp8_cfg.enabled")))
    source.put_precision(key("fp8_cfg.fp8_recipe"), recipe);
  if (!megatron && source.on(key("cpu_offload"))) {
    put_fsdp_offload(source, key("cpu_offload"));
    put_unfused_on_host(source, key("cpu_offload"));
  }
  put_learners(
      source,
      {.tensor = source.whole(tensor, 1, 1, most_ranks),
       .context = source.whole(key("context_parallel_size"), 1, 1, most_ranks),
       .stages = megatron ? source.whole(stages, 1, 1, most_ranks) : 1,
       .experts = source.whole(experts, 1, 1, most_ranks),
       .expert_tensor = megatron ? expert_tensor_of(source, tensor) : 1,
       .sequence = source.on(key("sequence_parallel")),
       .first_layers = source.whole(key("num_layers_in_first_pipeline_stage"), 0, 0, most_ranks),
       .last_layers = source.whole(key("num_layers_in_last_pipeline_stage"), 0, 0, most_ranks),
       .tensor_key = tensor,
       .context_key = key("context_parallel_size"),
       .stages_key = stages,
       .experts_key = experts,
       .expert_tensor_key = std::string(expert_tensor_key),
       .sequence_key = key("sequence_parallel")});
}

// These are what its programs train with: the block that a file of theirs begins with.
enum class NemoTraining : std::uint8_t { grpo, sft, dpo };

NemoTraining training_of(MappedSource& source) {
  const auto has = [&](std::string_view block) { return !source.keys_below(block).empty(); };
  if (has("grpo")) return NemoTraining::grpo;
  for (const std::string_view other : {"ppo", "rm", "distillation"})
    if (has(other)) {
      source.problem(other, "of a NeMo-RL file is not read yet; expected grpo, sft or dpo");
      return NemoTraining::grpo;
    }
  if (has("sft")) return NemoTraining::sft;
  return has("dpo") ? NemoTraining::dpo : NemoTraining::grpo;
}

void read_supervised(MappedSource& source, NemoTraining training) {
  const bool pairs = training == NemoTraining::dpo;
  const std::string block = pairs ? "dpo." : "sft.";
  source.put("job.method", pairs ? "dpo" : "sft", "");
  if (pairs) source.put("job.reference_model", true, "", "log-probabilities of the first policy");
  source.text("data.max_input_seq_length");
  source.put("job.sequence", source.whole("policy.max_total_sequence_length", 1024, 1, most_tokens),
             "policy.max_total_sequence_length");
  source.put("job.micro_batch", source.whole("policy.train_micro_batch_size", 1, 1, most_rows),
             "policy.train_micro_batch_size");
  source.put("job.global_batch", source.whole("policy.train_global_batch_size", 32, 1, most_tokens),
             "policy.train_global_batch_size");
  const bool packed = source.on("policy.sequence_packing.enabled");
  source.put("job.packing", packed, "policy.sequence_packing.enabled");
  for (const std::string_view other :
       {"policy.sequence_packing.train_mb_tokens", "policy.dynamic_batching.train_mb_tokens"})
    source.whole(other, 1, 1, most_tokens);
  if (source.on("policy.dynamic_batching.enabled"))
    source.without("policy.dynamic_batching.enabled", "every micro-batch has as many rows");
  const double epochs = source.number(block + "max_num_epochs", 1, -1, 1e6);
  const std::int64_t steps = source.whole(block + "max_num_steps", 0, -1, 1'000'000'000);
  if (steps > 0)
    source.put("job.optimizer_steps", steps, block + "max_num_steps");
  else if (epochs > 0)
    source.put("job.epochs", fmt::format("{}", epochs), block + "max_num_epochs");
  assume_data(source.question(),
              {.packed = packed,
               .pairs = pairs,
               .epochs = std::max(epochs, 0.0),
               .steps_said = steps > 0,
               .padding = Padding::longest},
              source.result());
}

// Adapters under the names of either backend.
void read_nemo_adapter(MappedSource& source, bool megatron) {
  const std::string block = megatron ? "policy.megatron_cfg.peft." : "policy.dtensor_cfg.lora_cfg.";
  const std::int64_t rank = source.whole(block + "dim", 8, 1, most_lora_rank);
  const std::vector<std::string> modules = source.texts(block + "target_modules");
  if (!source.on(block + "enabled")) return;
  put_adapter(source, {.rank_key = block + "dim",
                       .modules_key = block + "target_modules",
                       .rank = rank,
                       .modules = modules,
                       .usual_modules = "all-linear"});
}

}  // namespace

Translation translate_nemo_rl(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "NeMo-RL", "programs/nemo_rl/nemo-rl");
  read_defaults(source);
  const NemoTraining training = training_of(source);
  const bool megatron = source.on("policy.megatron_cfg.enabled");
  source.on("policy.dtensor_cfg.enabled");
  const Machine machine{.nodes = source.whole("cluster.num_nodes", 1, 1, 1 << 13),
                        .gpus = source.whole("cluster.gpus_per_node", 1, 1, 1 << 10)};
  source.put_model("policy.model_name");
  assume_machine(question, source.root(), source.result(),
                 {.gpus = machine.nodes * machine.gpus,
                  .nodes = machine.nodes,
                  .why = "cluster.num_nodes and gpus_per_node say so",
                  .each = source.says("cluster.gpus_per_node") ? machine.gpus : 0});
  source.look_around();
  source.put_stack(megatron ? "stacks_of_megatron" : "stacks");
  if (training == NemoTraining::grpo) {
    source.put("job.method", "grpo", "");
    source.put("job.deepspeed_zpg", "1", "", "no second copy of the parameters");
    if (const std::string backend = source.text("policy.generation.backend", "vllm");
        backend != "vllm")
      source.without("policy.generation.backend", fmt::format("{} is counted as vllm", backend));
    read_layout(source, machine);
    read_lengths(source);
    read_nemo_batch(source);
  } else {
    read_supervised(source, training);
  }
  read_nemo_learners(source, megatron);
  read_nemo_adapter(source, megatron);
  if (training != NemoTraining::grpo) return source.finish();
  assume_responses(source);
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
