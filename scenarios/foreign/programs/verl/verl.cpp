#include "scenarios/foreign/programs/verl/verl.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/programs/megatron/megatron.hpp"
#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/grpo_source.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "scenarios/foreign/text/near_files.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

std::string actor_megatron(std::string_view key) {
  return actor_key(fmt::format("megatron.{}", key));
}

GpusOfSource read_machine(MappedSource& source) {
  const std::int64_t nodes = source.whole("trainer.nnodes", 1, 1, 1 << 13),
                     gpus = source.whole("trainer.n_gpus_per_node", 8, 1, 1 << 10);
  return {.gpus = nodes * gpus,
          .nodes = nodes,
          .why = "trainer.nnodes and n_gpus_per_node say so",
          .each = source.says("trainer.n_gpus_per_node") ? gpus : 0};
}

// Advantages that compare answers to the same prompt, or to all; or those of a critic, which every
// GPU has beside the policy.
void read_verl_method(MappedSource& source) {
  constexpr std::string_view key = "algorithm.adv_estimator";
  const std::string said = source.choice(key, "gae");
  const bool scored = source.on("reward_model.enable");
  if (said != "gae") {
    if (scored)
      source.without("reward_model.enable",
                     "a reward model without a critic; job.reward_latency says what it takes");
    return;
  }
  source.put("job.critic", true, key);
  if (scored) source.put("job.reward_model", true, "reward_model.enable");
  const std::string policy = source.text("actor_rollout_ref.model.path");
  for (const std::string_view other : {"critic.model.path", "reward_model.model.path"})
    if (const std::string model = source.text(other);
        !model.empty() && model != policy && (scored || other.starts_with("critic")))
      source.without(other, fmt::format("{}: counted as large as the policy", model));
}

// Scripts ask for XFormers because of vLLM up to 0.6.3, which verl ran without CUDA graphs.
void read_vllm(MappedSource& source, std::string_view key) {
  constexpr std::string_view graphs = "actor_rollout_ref.rollout.enforce_eager";
  const Launch* launch = source.question().launch;
  if (launch == nullptr) return;
  const auto attention = launch->environment.find("VLLM_ATTENTION_BACKEND");
  if (attention == launch->environment.end() || attention->second.text != "XFORMERS") return;
  source.put("engine", "vllm-v0", key, "VLLM_ATTENTION_BACKEND=XFORMERS");
  if (!source.says(graphs)) source.put("job.vllm_enforce_eager", true, graphs, "of vLLM 0.6.3");
}

void read_engines(MappedSource& source) {
  constexpr std::string_view key = "actor_rollout_ref.rollout.name",
                             quantised = "actor_rollout_ref.rollout.quantization";
  const std::string said = source.text(key, "vllm");
  const Table engines = source.facts().table("engines");
  if (engines.has(said))
    source.put("engine", engines.text(said), key);
  else if (said != "vllm")
    source.without(key, fmt::format("{} is counted as vllm", said));
  else
    read_vllm(source, key);
  if (const std::string type = source.text(quantised); type == "fp8")
    source.put("job.vllm_quantization", "fp8", quantised);
  else if (!type.empty())
    source.without(quantised, fmt::format("{}: weights of engines in 16 bits", type));
  constexpr std::string_view bucket =
      "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes";
  source.put("job.sync_bucket", fmt::format("{} MiB", source.whole(bucket, 2048, 1, 1 << 20)),
             bucket);
}

// Rows without padding have what they hold, others as much as the longest may have.
void read_verl_rows(MappedSource& source, bool megatron, std::int64_t rows, std::string_view key,
                    std::int64_t longest) {
  const std::string padding_key = megatron ? actor_megatron("use_remove_padding")
                                           : "actor_rollout_ref.model.use_remove_padding";
  if (source.on(padding_key, true)) return source.put("job.pack_rows", rows, key);
  source.put("job.batching", "rows", padding_key);
  source.put("job.pack_length", rows * longest, key,
             fmt::format("{} rows of {} tokens", rows, longest));
}

// Returns how many learners have a batch of their own.
std::int64_t verl_batches(MappedSource& source, bool megatron, std::int64_t shared) {
  const auto& cluster = source.around().cluster;
  if (!cluster) return 1;
  for (const std::string_view degree :
       {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"})
    if (const std::int64_t size = source.whole(actor_megatron(degree), 1, 1, most_ranks); megatron)
      shared *= size;
  return std::max<std::int64_t>(static_cast<std::int64_t>(cluster->ranks()) / shared, 1);
}

// Writes "16 or 24": the next values on both sides for which `known` holds, as it does for 1.
template <class Known>
std::string nearest(std::int64_t value, const Known& known) {
  constexpr std::int64_t far = 1 << 20;  // a number may have no other divisor
  std::int64_t below = value - 1, above = value + 1;
  while (below > 1 && value - below < far && !known(below)) --below;
  while (above - value < far && !known(above)) ++above;
  std::vector<std::string> found;
  if (below > 0 && known(below)) found.push_back(std::to_string(below));
  if (known(above)) found.push_back(std::to_string(above));
  return found.empty() ? "1" : one_of(found);
}

// verl compares these before it starts: validate_config(), ActorConfig.validate(), and its workers,
// which take mini-batches in responses of each learner.
struct VerlBatch {
  std::int64_t prompts = 0, responses = 0, mini = 0;
  std::int64_t rows = 0, all_rows = 0;  // a micro-batch: of a learner, of all; 0: not said
  std::int64_t learners = 1, ranks = 1, shared = 1;
  bool megatron = false, by_tokens = false;

  std::int64_t mini_rows() const { return mini * responses / learners; }  // of a learner
};

void check_prompts(MappedSource& source, const VerlBatch& b) {
  constexpr std::string_view train_key = "data.train_batch_size";
  const std::string mini_key = actor_key("ppo_mini_batch_size");
  if (!b.by_tokens && b.prompts < b.mini)
    return source.problem(
        source.says(train_key) ? std::string(train_key) : mini_key,
        fmt::format("verl refuses {} prompts a step, fewer than {} = {}: expected at least {} "
                    "prompts, or mini-batches of at most {}",
                    b.prompts, mini_key, b.mini, b.mini, b.prompts));
  const std::int64_t piece = b.megatron ? b.learners * std::max<std::int64_t>(b.rows, 1) : b.ranks;
  const auto even = [&](std::int64_t prompts) { return prompts * b.responses % piece == 0; };
  if (!even(b.prompts))
    source.problem(
        source.says(train_key) ? train_key : "actor_rollout_ref.rollout.n",
        fmt::format("verl refuses {} prompts x {} responses, which {} does not divide ({}): "
                    "expected {} prompts",
                    b.prompts, b.responses, piece,
                    b.megatron ? fmt::format("{} learners, micro-batches of {}", b.learners,
                                             piece / b.learners)
                               : "GPUs of trainer.nnodes and n_gpus_per_node",
                    nearest(b.prompts, even)));
}

void check_mini_batches(MappedSource& source, const VerlBatch& b) {
  const std::string mini_key = actor_key("ppo_mini_batch_size"),
                    all_key = actor_key("ppo_micro_batch_size");
  const auto in_mini = [&](std::int64_t rows) { return b.mini % rows == 0; };
  if (b.all_rows > 0 && !in_mini(b.all_rows))
    return source.problem(all_key,
                          fmt::format("verl refuses {}, which does not divide {} = {}: "
                                      "expected {}",
                                      b.all_rows, mini_key, b.mini, nearest(b.all_rows, in_mini)));
  if (b.all_rows > 0 && b.all_rows * b.shared < b.ranks)
    return source.problem(all_key,
                          fmt::format("verl refuses {} rows for {} GPUs: expected at least {}, or "
                                      "{}_per_gpu",
                                      b.all_rows, b.ranks, b.ranks / b.shared, all_key));
  if (b.mini_rows() == 0)
    return source.problem(
        mini_key,
        fmt::format("verl refuses {} prompts x {} responses, fewer than {} learners: expected at "
                    "least {}",
                    b.mini, b.responses, b.learners, (b.learners + b.responses - 1) / b.responses));
  const std::int64_t rows = b.all_rows > 0 ? b.all_rows / b.learners : b.rows;
  const auto divides = [&](std::int64_t each) { return b.mini_rows() % each == 0; };
  if (rows > 0 && !divides(rows))
    source.problem(
        b.all_rows > 0 ? all_key : all_key + "_per_gpu",
        fmt::format("verl refuses {}, which does not divide the {} rows that a learner has of a "
                    "mini-batch ({} x {} responses over {} learners): expected {}",
                    rows, b.mini_rows(), b.mini, b.responses, b.learners, nearest(rows, divides)));
}

// Reads the prompts that a step trains on. The loader hands out data.gen_batch_size at a time: all
// of them, but for trainers that leave groups without a signal out
// (recipe/dapo/dapo_ray_trainer.py).
std::int64_t read_verl_prompts(MappedSource& source) {
  constexpr std::string_view train_key = "data.train_batch_size",
                             at_once_key = "data.gen_batch_size",
                             filter_key = "algorithm.filter_groups.enable";
  const std::int64_t prompts = source.whole(train_key, 1024, 1, most_tokens),
                     at_once = source.whole(at_once_key, prompts, 1, most_tokens);
  const Launch* launch = source.question().launch;
  const std::string program = launch == nullptr ? "" : launch->program;
  if (source.on(filter_key)) {
    if (!program.ends_with("main_ppo")) {
      put_rounds(source, at_once, source.says(at_once_key) ? at_once_key : train_key, filter_key);
      return prompts;
    }
    source.note(fmt::format("{}: {} leaves no group out", filter_key, program));
  }
  const bool one_by_one = program.find("fully_async") != std::string::npos;
  if (at_once == prompts || one_by_one) return prompts;
  source.put("job.num_unique_prompts_rollout", at_once, at_once_key,
             "a step trains on all that is generated");
  return at_once;
}

// A fork, Search-R1, repeats each prompt so often before its engine answers it.
std::int64_t verl_samples(MappedSource& source) {
  constexpr std::string_view key = "actor_rollout_ref.rollout.n_agent";
  const std::int64_t samples = source.whole("actor_rollout_ref.rollout.n", 1, 1, most_tokens),
                     agents = source.whole(key, 1, 1, most_rows);
  if (agents > 1) source.put("job.num_samples_per_prompt_rollout", samples * agents, key);
  return samples * agents;
}

void read_verl_batch(MappedSource& source, bool megatron) {
  const std::int64_t prompts = read_verl_prompts(source), samples = verl_samples(source);
  const std::int64_t longest = source.whole("data.max_prompt_length", 512, 1, most_tokens) +
                               source.whole("data.max_response_length", 512, 1, most_tokens);
  const std::int64_t shared =
      source.whole(actor_key("ulysses_sequence_parallel_size"), 1, 1, most_ranks);
  const std::int64_t mini = source.whole(actor_key("ppo_mini_batch_size"), 256, 1, most_tokens);
  put_updates(source, prompts, mini, actor_key("ppo_mini_batch_size"));
  const std::string tokens_key = actor_key("ppo_max_token_len_per_gpu"),
                    rows_key = actor_key("ppo_micro_batch_size_per_gpu");
  const std::string all_rows_key = actor_key("ppo_micro_batch_size");
  const std::int64_t tokens = source.whole(tokens_key, 16384, 1, most_tokens),
                     said = source.whole(rows_key, 1, 1, most_tokens),
                     all_rows = source.whole(all_rows_key, 0, 0, most_tokens),
                     batches = verl_batches(source, megatron, shared);
  const std::int64_t ring =
      megatron ? source.whole(actor_megatron("context_parallel_size"), 1, 1, most_ranks) : 1;
  const bool by_tokens = source.on(actor_key("use_dynamic_bsz"));
  if (const auto& cluster = source.around().cluster) {
    const VerlBatch batch{.prompts = source.whole("data.train_batch_size", 1024, 1, most_tokens),
                          .responses = samples,
                          .mini = mini,
                          .rows = source.says(rows_key) ? said : 0,
                          .all_rows = all_rows,
                          .learners = batches,
                          .ranks = static_cast<std::int64_t>(cluster->ranks()),
                          .shared = shared,
                          .megatron = megatron,
                          .by_tokens = by_tokens};
    check_prompts(source, batch);
    // Its newer workers, where they are asked for, compare nothing.
    const bool newer = source.text("trainer.use_legacy_worker_impl", "auto") == "disable";
    if (!megatron && !by_tokens && !newer) check_mini_batches(source, batch);
  }
  if (by_tokens)
    source.put("job.pack_length", std::max(tokens * shared * ring, longest), tokens_key);
  else if (all_rows > 0)  // of all learners together, as older releases count them
    read_verl_rows(source, megatron, std::max<std::int64_t>(all_rows / batches, 1), all_rows_key,
                   longest);
  else
    read_verl_rows(source, megatron, said, rows_key, longest);
  if (const std::int64_t steps = source.whole("trainer.total_training_steps", 0, 0, 1'000'000'000);
      steps > 0)
    source.put("job.total_episodes", steps * prompts * samples, "trainer.total_training_steps");
}

// A frozen model runs along where something is compared with it.
// Releases that do not ask whether rewards hold it always have it.
void read_reference(MappedSource& source, bool old) {
  const bool in_loss = source.on(actor_key("use_kl_loss")),
             in_reward = source.on("algorithm.use_kl_in_reward",
                                   old && !source.says("algorithm.use_kl_in_reward"));
  const bool parked = source.on("actor_rollout_ref.ref.fsdp_config.param_offload") ||
                      source.on("actor_rollout_ref.ref.megatron.param_offload");
  source.put("job.load_ref_policy", in_loss || in_reward,
             in_loss || !in_reward ? actor_key("use_kl_loss") : "algorithm.use_kl_in_reward");
  // FSDP's own offload has it on the host already.
  const bool there = source.on(actor_key("fsdp_config.offload_policy"));
  if (parked && !there && (in_loss || in_reward))
    source.put("job.park_reference", true, "actor_rollout_ref.ref.fsdp_config.param_offload");
}

// Megatron's own settings say what it computes again; the key of models is for FSDP.
void read_verl_recomputing(MappedSource& source, std::int64_t stages) {
  const auto key = [](std::string_view name) {
    return actor_megatron(fmt::format("override_transformer_config.recompute_{}", name));
  };
  const std::string said = source.text(key("granularity"), "none");
  put_recomputing(source,
                  {.granularity = key("granularity"),
                   .method = key("method"),
                   .layers = key("num_layers"),
                   .modules = key("modules"),
                   .stages = stages},
                  said == "null" || said == "None" ? "none" : said);
}

// Reads adapters of FSDP, or Megatron-Bridge's. Engines have the model, and are sent what is
// trained.
void read_verl_adapter(MappedSource& source, bool megatron) {
  const std::string block = "actor_rollout_ref.model.";
  const std::string rank_key = block + (megatron ? "lora.rank" : "lora_rank"),
                    modules_key = block + (megatron ? "lora.target_modules" : "target_modules");
  const std::int64_t rank = source.whole(rank_key, 0, 0, most_lora_rank);
  const std::string said = source.text(modules_key);
  const bool merged = source.on("actor_rollout_ref.model.lora.merge");
  if (rank == 0) return;
  std::vector<std::string> modules{said};
  if (said.starts_with('[')) modules = source.texts(modules_key);
  if (megatron || said.empty()) modules = {"all-linear"};
  put_adapter(source,
              {.rank_key = rank_key, .modules_key = modules_key, .rank = rank, .modules = modules});
  if (!megatron || !merged) source.put("job.sync_adapters", true, rank_key);
}

void read_verl_learners(MappedSource& source, bool megatron) {
  const std::string block = megatron ? "megatron" : "fsdp_config";
  bool parked = false;
  for (const std::string_view kind : {"fsdp_config", "megatron"})
    for (const std::string_view what : {"param_offload", "optimizer_offload"})
      parked = source.on(actor_key(fmt::format("{}.{}", kind, what))) || parked;
  source.put("job.park_learners", parked, actor_key(fmt::format("{}.optimizer_offload", block)));
  const LearnersOfSource learners = megatron_learners(source, actor_megatron(""));
  const std::int64_t shard = source.whole(actor_key("fsdp_config.fsdp_size"), -1, -1, 1 << 20);
  const bool reshard = source.on(actor_key("fsdp_config.reshard_after_forward"), true);
  const bool again = source.on("actor_rollout_ref.model.enable_gradient_checkpointing", true);
  if (megatron) {
    source.put("strategy.zero", "1", actor_key("strategy"));
    read_verl_recomputing(source, learners.stages);
    return put_learners(source, learners);
  }
  source.put("strategy.checkpointing", again ? "full" : "none",
             "actor_rollout_ref.model.enable_gradient_checkpointing");
  const auto& cluster = source.around().cluster;
  const bool some = shard > 0 && (!cluster || shard < static_cast<std::int64_t>(cluster->ranks()));
  source.put("strategy.zero", some ? "hsdp" : "fsdp",
             some ? actor_key("fsdp_config.fsdp_size") : actor_key("strategy"));
  if (some) source.put("strategy.fsdp.shard", shard, actor_key("fsdp_config.fsdp_size"));
  if (!reshard)
    source.put("strategy.fsdp.reshard_after_forward", false,
               actor_key("fsdp_config.reshard_after_forward"));
  put_model_dtype(source, actor_key("fsdp_config.model_dtype"));
  if (const std::string policy = actor_key("fsdp_config.offload_policy"); source.on(policy)) {
    put_fsdp_offload(source, policy);
    put_unfused_on_host(source, policy);
  }
  source.put("strategy.cross_entropy", "in_place", "",
             "one kernel finds the probabilities of the tokens");
}

}  // namespace

std::string actor_key(std::string_view key) {
  return fmt::format("actor_rollout_ref.actor.{}", key);
}

void put_model_dtype(MappedSource& source, std::string_view key) {
  const std::string said = source.text(key, "fp32");
  const std::vector<std::string> half{"bf16", "bfloat16", "fp16", "float16", "16"},
      whole{"fp32", "float32", "32"};
  if (holds(half, said)) return put_loaded(source, Loaded::in_16_bits, key);
  if (!holds(whole, said))
    source.problem(key, fmt::format("expected fp32 or bf16, found \"{}\"", said));
}

// Releases have defaults of their own, in a file of the repository that the script lies in; since
// that file is put together out of others, they are those of the table. Whether it is an old one.
bool read_own_defaults(MappedSource& source, const std::string& name) {
  const SourceQuestion& question = source.question();
  const std::string& asked = question.script.empty() ? question.file : question.script;
  const auto file = find_above(
      asked, fmt::format("verl/trainer/config/{}.yaml", name.empty() ? "ppo_trainer" : name));
  if (!file || *file == question.file) return false;
  const Document defaults = read_document(*file);
  const bool whole =
      defaults.root().is_mapping("actor_rollout_ref") && !defaults.root().has("defaults");
  if (whole) source.inherit(*file);
  return whole;
}

Translation translate_verl(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "verl", "programs/verl/verl");
  source.take_releases({"verl"});
  const std::string settings = source.text("config-name");
  const bool old = read_own_defaults(source, settings);
  source.text("config-path");
  const bool named = settings.find("megatron") != std::string::npos;
  const bool megatron =
      source.text(actor_key("strategy"), named ? "megatron" : "fsdp") == "megatron";
  const GpusOfSource gpus = read_machine(source);
  source.put_model("actor_rollout_ref.model.path");
  assume_machine(question, source.root(), source.result(), gpus);
  source.look_around();
  source.put_stack(megatron ? "stacks_of_megatron" : "stacks");
  source.put("recipe", "verl", "", "how its trainer runs a step");
  source.put("job.method", "grpo", "algorithm.adv_estimator");
  source.put("job.layout", "colocated", "", "every GPU generates and learns in turn");
  source.put("job.deepspeed_zpg", "1", "", "no second copy of the parameters");
  read_verl_method(source);
  read_engines(source);
  read_verl_batch(source, megatron);
  read_reference(source, old);
  read_verl_learners(source, megatron);
  read_verl_adapter(source, megatron);
  assume_responses(source);
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
