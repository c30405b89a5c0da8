#include "scenarios/grpo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace stepsim {
namespace {

constexpr std::int64_t many = 1 << 24;

template <class Enum, std::size_t N>
Enum word(const Table& table, std::string_view key, const std::array<std::string_view, N>& names,
          Enum fallback) {
  if (!table.has(key)) return fallback;
  const std::vector<std::string> words(names.begin(), names.end());
  const std::string found = table.choice(key, words);
  const auto place = std::find(words.begin(), words.end(), found);
  return place == words.end() ? fallback : static_cast<Enum>(place - words.begin());
}

std::vector<std::int64_t> integers(const Table& table, std::string_view key, std::int64_t low) {
  std::vector<std::int64_t> list;
  for (const std::string& text : table.texts_or(key)) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low || value > many)
      table.problem(key, fmt::format("expected whole numbers from {}, found {}", low, text));
    else
      list.push_back(value);
  }
  return list;
}

ResponseLengths read_lengths(const Table& job, std::int64_t limit) {
  ResponseLengths lengths;
  // Nobody who leaves it out has measured it: a third of the limit, and a long tail.
  lengths.mean = static_cast<double>(limit) / 3;
  const auto table = job.table_if("response_lengths");
  if (!table) return lengths;
  lengths.kind = word(*table, "type", length_kind_names, LengthKind::lognormal);
  lengths.seed = static_cast<std::uint64_t>(table->integer_or("seed", 1, 0, many));
  if (lengths.kind == LengthKind::empirical) {
    table->texts("list");  // notes that it is missing
    lengths.list = integers(*table, "list", 1);
    if (lengths.list.empty()) lengths.list = {limit};
    return lengths;
  }
  lengths.mean = table->number("mean", 1, 1e7);
  if (lengths.kind == LengthKind::lognormal && table->has("sigma"))
    lengths.sigma = table->number("sigma", 0, 3);
  return lengths;
}

void read_engines(const Table& job, Grpo& grpo) {
  if (job.text_or("vllm_num_engines", "auto") != "auto")
    grpo.engines = static_cast<std::uint32_t>(job.integer("vllm_num_engines", 1, 1 << 20));
  grpo.tensor_parallel =
      static_cast<std::uint32_t>(job.integer_or("vllm_tensor_parallel_size", 1, 1, 64));
  grpo.memory_utilization = job.number_or("vllm_gpu_memory_utilization", 0.9, 0.01, 1);
  grpo.weights = word(job, "vllm_quantization", engine_bits_names, EngineBits::half);
  grpo.cache = word(job, "vllm_kv_cache_dtype", engine_bits_names, EngineBits::half);
  grpo.enforce_eager = job.flag_or("vllm_enforce_eager", false);
  grpo.prefix_caching = job.flag_or("vllm_enable_prefix_caching", false);
  grpo.admitted_samples = job.integer_or("inference_batch_size", 0, 0, many);
  grpo.batched_sequences = job.integer_or("max_num_seqs", grpo.batched_sequences, 1, many);
}

void read_sync(const Table& job, Grpo& grpo) {
  grpo.backend = word(job, "vllm_sync_backend", sync_backend_names, SyncBackend::nccl);
  grpo.protocol = word(job, "sync_protocol", sync_protocol_names, SyncProtocol::v3);
  grpo.broadcast = word(job, "broadcast", broadcast_shape_names, BroadcastShape::pipelined);
  grpo.gather_whole_model = job.flag_or("gather_whole_model", true);
  if (job.has("per_tensor_overhead"))
    grpo.per_tensor_overhead = job.quantity<Seconds>("per_tensor_overhead");
  const bool colocated = grpo.layout == GrpoLayout::colocated;
  grpo.park_learners = job.flag_or("park_learners", false);
  grpo.async_steps = job.integer_or("async_steps", colocated ? 0 : 8, 0, 1000);
  grpo.inflight_updates = job.flag_or("inflight_updates", grpo.async_steps > 0);
  // Later code compares a result's age with async_steps.
  grpo.drop_stale = job.flag_or("drop_stale_results", grpo.protocol == SyncProtocol::v3);
}

void read_batch(const Table& job, Grpo& grpo) {
  grpo.prompts = job.integer_or("num_unique_prompts_rollout", 16, 1, many);
  grpo.samples = job.integer_or("num_samples_per_prompt_rollout", 4, 1, many);
  grpo.prompt_limit = job.integer_or("max_prompt_token_length", 256, 1, many);
  grpo.prompt_tokens = job.integer_or(
      "prompt_length", std::min<std::int64_t>(grpo.prompt_limit, 256), 1, grpo.prompt_limit);
  grpo.response_limit = job.integer_or("response_length", 256, 1, many);
  grpo.pack_length =
      job.integer_or("pack_length", grpo.prompt_limit + grpo.response_limit, 1, many);
  const bool colocated = grpo.layout == GrpoLayout::colocated;
  grpo.batching =
      word(job, "batching", batching_names, colocated ? Batching::shares : Batching::packs);
  grpo.lengths = read_lengths(job, grpo.response_limit);
  if (job.has("reward_latency")) grpo.reward_latency = job.quantity<Seconds>("reward_latency");
  grpo.zero_std_fraction = job.number_or("zero_std_fraction", 0, 0, 0.95);
  grpo.filter_zero_std = job.flag_or("filter_zero_std_samples", true);
  grpo.active_sampling = job.flag_or("active_sampling", false);
  grpo.mini_batches = job.integer_or("num_mini_batches", 1, 1, 1 << 16);
  grpo.epochs = job.integer_or("num_epochs", 1, 1, 1 << 10);
  grpo.reference_model = job.flag_or("load_ref_policy", true);
  grpo.park_reference = job.flag_or("park_reference", false);
  grpo.engine_logprobs = job.flag_or("use_vllm_logprobs", false);
  grpo.hpz = job.integer_or("deepspeed_zpg", 8, 1, 1 << 16);
  grpo.total_episodes = job.number_or("total_episodes", 0, 0, 1e15);
  grpo.measured_steps = job.integer_or("measured_steps", grpo.measured_steps, 2, 100000);
}

constexpr std::array<std::string_view, 16> without_effect{"temperature",
                                                          "truncated_importance_sampling_ratio_cap",
                                                          "beta",
                                                          "backend_timeout",
                                                          "local_eval_every",
                                                          "save_freq",
                                                          "checkpoint_state_freq",
                                                          "mask_truncated_completions",
                                                          "no_resampling_pass_rate",
                                                          "attn_implementation",
                                                          "learning_rate",
                                                          "seed",
                                                          "per_device_train_batch_size",
                                                          "vllm_top_p",
                                                          "clip_lower",
                                                          "clip_higher"};

// The shorter name goes before the longer one, so that a setting can replace what the file says.
std::string_view learner_key(const Table& job) {
  const bool renamed = job.has("learners_per_node");
  if (renamed) job.texts_or("num_learners_per_node");
  return renamed ? "learners_per_node" : "num_learners_per_node";
}

void check_learners(const Table& job, const Scenario& scenario) {
  const Grpo& grpo = *scenario.grpo;
  const std::string_view key = learner_key(job);
  const std::uint32_t gpus = scenario.cluster.gpus_per_node();
  std::uint32_t most = 0;
  for (const std::uint32_t here : grpo.learners) most = std::max(most, here);
  if (most == 0) return job.problem(key, "needs at least one learner");
  if (most > gpus)
    return job.problem(key, fmt::format("{} learners on a node of {} GPUs", most, gpus));
}

// Learners that share a sequence work on one pack together.
void check_sharing(const Table& job, const Scenario& scenario, std::int64_t learners) {
  const Grpo& grpo = *scenario.grpo;
  const std::int64_t shared = scenario.strategy.sequence_parallel.ranks();
  constexpr std::string_view key = "sequence_parallel_size";
  if (job.integer_or(key, 1, 1, 1 << 16) > 1) {
    if (scenario.strategy.sharding != Sharding::zero3) job.problem(key, "needs deepspeed_stage: 3");
    if (learners % shared != 0)
      job.problem(key, fmt::format("{} does not divide {} learners", shared, learners));
    if (scenario.model.attention.heads % shared != 0)
      job.problem(key, fmt::format("{} does not divide the {} heads of {}", shared,
                                   scenario.model.attention.heads, scenario.model.name));
  }
  const std::int64_t parts = shared * scenario.strategy.tensor_parallel.size;
  if (grpo.prompts * grpo.samples < learners / std::max<std::int64_t>(1, parts))
    job.problem("num_unique_prompts_rollout",
                fmt::format("{} x {} responses are fewer than {} learners: some would have none",
                            grpo.prompts, grpo.samples, learners / parts));
}

void check_engines(const Table& job, const Scenario& scenario, const Placement& placement) {
  const Grpo& grpo = *scenario.grpo;
  const std::uint32_t tp = grpo.tensor_parallel, gpus = scenario.cluster.gpus_per_node();
  constexpr std::string_view parallel = "vllm_tensor_parallel_size";
  if (tp > gpus)
    return job.problem(parallel, fmt::format("{} GPUs of one node: a node has {}, and an engine "
                                             "never spans nodes",
                                             tp, gpus));
  if (scenario.model.attention.heads % tp != 0)
    return job.problem(parallel, fmt::format("{} does not divide the {} heads of {}", tp,
                                             scenario.model.attention.heads, scenario.model.name));
  if (placement.most_engines == 0)
    return job.problem(parallel, fmt::format("no node has {} GPU{} left beside its learners", tp,
                                             tp == 1 ? "" : "s"));
  if (grpo.engines && *grpo.engines > placement.most_engines)
    job.problem("vllm_num_engines",
                fmt::format("{} engines of {} GPU{}: {} find room", *grpo.engines, tp,
                            tp == 1 ? "" : "s", placement.most_engines));
}

void check_lengths(const Table& job, const Scenario& scenario) {
  const Grpo& grpo = *scenario.grpo;
  if (grpo.pack_length < grpo.model_length())
    job.problem("pack_length",
                fmt::format("{} is shorter than a prompt and its response ({} + {})",
                            grpo.pack_length, grpo.prompt_limit, grpo.response_limit));
  const std::int64_t longest = scenario.model.longest_sequence;
  if (longest > 0 && grpo.model_length() > longest)
    job.problem("response_length",
                fmt::format("prompt and response of {} are longer than {} allows ({})",
                            grpo.model_length(), scenario.model.name, longest));
}

}  // namespace

Grpo read_grpo(const Table& job) {
  Grpo grpo;
  grpo.layout = word(job, "layout", grpo_layout_names, GrpoLayout::separate);
  read_engines(job, grpo);
  read_sync(job, grpo);
  read_batch(job, grpo);
  return grpo;
}

void apply_grpo_strategy(const Table& job, Strategy& strategy) {
  if (job.has("deepspeed_stage"))
    strategy.sharding = static_cast<Sharding>(job.integer("deepspeed_stage", 0, 3));
  if (job.flag_or("deepspeed_offload_optimizer", false)) strategy.optimizer_place = Offload::cpu;
  if (job.flag_or("deepspeed_offload_param", false)) strategy.parameter_place = Offload::cpu;
  if (job.has("sequence_parallel_size"))
    strategy.sequence_parallel.ulysses = job.integer("sequence_parallel_size", 1, 1 << 16);
  if (job.has("gradient_checkpointing"))
    strategy.checkpointing =
        job.flag_or("gradient_checkpointing", true) ? Checkpointing::full : Checkpointing::none;
}

void place_learners(const Table& job, std::uint32_t nodes, Grpo& grpo) {
  const std::string_view key = learner_key(job);
  const bool colocated = grpo.layout == GrpoLayout::colocated;
  if (colocated && job.has(key))
    return job.problem(key, "layout: colocated has learners everywhere");
  if (colocated) return;
  std::vector<std::int64_t> list = integers(job, key, 0);
  if (list.empty()) list = {1};
  if (list.size() > nodes)
    job.problem(key, fmt::format("{} entries for {} nodes", list.size(), nodes));
  grpo.learners = learners_by_node(list, nodes);
}

// open-instruct's default is a node of eight; with other numbers it would not start.
void fit_default_partition(const Table& job, Scenario& scenario) {
  Grpo& grpo = *scenario.grpo;
  if (job.has("deepspeed_zpg") || !job.sound()) return;
  const auto learners = static_cast<std::int64_t>(place(scenario.cluster, grpo).learners.size());
  const std::int64_t usual = grpo.hpz;
  while (grpo.hpz > 1 && learners % grpo.hpz != 0) --grpo.hpz;
  if (grpo.hpz != usual)
    scenario.notes.push_back(fmt::format(
        "job.deepspeed_zpg is not set: {}, as its default of {} does not divide {} learners",
        grpo.hpz, usual, learners));
}

void check_grpo(const Table& job, const Scenario& scenario) {
  const Grpo& grpo = *scenario.grpo;
  if (grpo.layout == GrpoLayout::separate) check_learners(job, scenario);
  if (!job.sound()) return;
  const Placement placement = place(scenario.cluster, grpo);
  check_engines(job, scenario, placement);
  check_lengths(job, scenario);
  const auto learners = static_cast<std::int64_t>(placement.learners.size());
  check_sharing(job, scenario, learners);
  if (grpo.hpz > 1 && learners % grpo.hpz != 0)
    job.problem("deepspeed_zpg", fmt::format("{} does not divide {} learners (the default is 8)",
                                             grpo.hpz, learners));
  if (grpo.active_sampling && grpo.async_steps < 2)
    job.problem("active_sampling", "needs async_steps of 2 or more");
  if (grpo.layout == GrpoLayout::separate && grpo.park_learners)
    job.problem("park_learners", "layout: separate keeps learners at work: false");
  if (grpo.park_reference && !grpo.reference_model)
    job.problem("park_reference", "load_ref_policy: false has no reference model");
  if (grpo.park_reference && scenario.strategy.parameter_place != Offload::none)
    job.problem("park_reference", "offload: {params: ...} has the reference model there already");
  if (grpo.layout == GrpoLayout::colocated && grpo.async_steps > 0)
    job.problem("async_steps", "layout: colocated generates and learns in turn: 0");
}

std::vector<std::string> grpo_notes(const Table& job) {
  std::vector<std::string> notes;
  for (const std::string_view key : without_effect) {
    if (!job.has(key)) continue;
    job.text_or(key, "");
    notes.push_back(fmt::format("job.{} makes no difference here", key));
  }
  return notes;
}

std::vector<std::string> grpo_warnings(const Scenario& scenario, const Placement& placement) {
  const Grpo& grpo = *scenario.grpo;
  std::vector<std::string> list;
  const auto engines = static_cast<std::int64_t>(placement.engines.size());
  const std::int64_t flying = std::max<std::int64_t>(1, grpo.async_steps) * grpo.prompts;
  if (engines > flying)
    list.push_back(fmt::format("{} engines for at most {} prompts in flight: {} have nothing to do",
                               engines, flying, engines - flying));
  else if (engines > grpo.prompts)
    list.push_back(
        fmt::format("{} engines for {} prompts of a step: only async_steps keeps them all "
                    "busy",
                    engines, grpo.prompts));
  if (placement.stranded > 0)
    list.push_back(fmt::format("{} GPU{} neither learn nor generate", placement.stranded,
                               placement.stranded == 1 ? "" : "s"));
  const bool spread = grpo.layout == GrpoLayout::separate && scenario.cluster.nodes > 1 &&
                      *std::max_element(grpo.learners.begin(), grpo.learners.end()) == 1;
  if (grpo.hpz > 1 && spread)
    list.push_back(
        fmt::format("deepspeed_zpg: {} with one learner a node costs memory and saves no "
                    "traffic between nodes",
                    grpo.hpz));
  return list;
}

}  // namespace stepsim
