#include "scenarios/keys/grpo_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "scenarios/keys/failure_keys.hpp"
#include "workloads/grpo/lengths.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t most_pack_tokens = 1 << 24;

bool colocated(const Grpo& grpo) {
  return grpo.layout == GrpoLayout::colocated;
}
bool separate(const Grpo& grpo) {
  return !colocated(grpo);
}

// Read where the number of GPUs is known. Below 1 a share of all of them.
constexpr Key<Grpo> own_gpus(std::string_view name, std::string_view sentence,
                             std::string (*text)(const KeyFacts&, const Grpo&),
                             bool (*matters)(const Grpo&)) {
  return {.facts = {.name = name,
                    .sentence = sentence,
                    .kind = KeyKind::number,
                    .low = 0,
                    .high = 1 << 20,
                    .otherwise = "0",
                    .example = "0.25",
                    .left_out = true},
          .text = text,
          .matters = matters};
}

template <std::uint32_t OwnGpus::*Count>
std::string count_text(const KeyFacts&, const Grpo& grpo) {
  return fmt::to_string(grpo.own.*Count);
}

constexpr std::array place_keys{
    word<&Grpo::layout>("layout", grpo_layout_names,
                        "separate: some GPUs learn and others generate; colocated: every GPU "
                        "generates and learns in turn"),
    Key<Grpo>{.facts = {.name = "vllm_num_engines",
                        .sentence = "engines; auto: as many as find room",
                        .kind = KeyKind::whole,
                        .low = 1,
                        .high = 1 << 20,
                        .otherwise = "auto",
                        .example = "auto"},
              .read =
                  [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
                    if (table.text_or(facts.name, "auto") == "auto") return;
                    grpo.engines = static_cast<std::uint32_t>(
                        table.integer(facts.name, 1, static_cast<std::int64_t>(facts.high)));
                  },
              .text =
                  [](const KeyFacts&, const Grpo& grpo) {
                    return grpo.engines ? fmt::to_string(*grpo.engines) : std::string("auto");
                  }},
    whole<&Grpo::tensor_parallel>("vllm_tensor_parallel_size", 1, 64,
                                  "GPUs of an engine; more than a node has: of whole nodes"),
    number<&Grpo::memory_utilization>("vllm_gpu_memory_utilization", 0.01, 1,
                                      "share of a GPU's memory that an engine takes"),
    word<&Grpo::weights>("vllm_quantization", engine_bits_names, "of an engine's weights"),
    word<&Grpo::cache>("vllm_kv_cache_dtype", engine_bits_names, "of keys and values"),
    flag<&Grpo::enforce_eager>("vllm_enforce_eager", "engines run without CUDA graphs"),
    flag<&Grpo::prefix_caching>("vllm_enable_prefix_caching",
                                "the samples of a group share their prompt"),
    whole<&Grpo::admitted_samples>("inference_batch_size", 0, most_pack_tokens,
                                   "samples that an engine takes at once; 0: as many sequences of "
                                   "full length as its share of memory would hold without "
                                   "weights, colocated all")
        .example("64"),
    whole<&Grpo::batched_sequences>("max_num_seqs", 1, most_pack_tokens, "sequences in one batch"),
    whole<&Grpo::batched_tokens>("max_num_batched_tokens", 1, most_pack_tokens,
                                 "tokens of one step: running sequences first, then prompts")
        .otherwise("2048, colocated 8192",
                   [](Grpo& grpo) {
                     if (colocated(grpo)) grpo.batched_tokens = 8192;
                   })
        .example("8192"),
    // Read where the number of nodes is known.
    Key<Grpo>{.facts = {.name = "num_learners_per_node",
                        .sentence = "learners on each node: nodes at the end have none; [1] means "
                                    "one on every node; or: learners_per_node",
                        .kind = KeyKind::list,
                        .otherwise = "[1]",
                        .example = "[2, 2]"},
              .text =
                  [](const KeyFacts&, const Grpo& grpo) {
                    return grpo.learners.empty()
                               ? std::string()
                               : fmt::format("[{}]", fmt::join(grpo.learners, ", "));
                  },
              .matters = separate},
    own_gpus("learner_gpus",
             "learners in all, on the first GPUs, where there is no list by node; below 1 a share "
             "of all GPUs",
             nullptr, separate),
    own_gpus("critic_gpus",
             "of the critic alone, at the end of the cluster; below 1 a share; 0: the learners'",
             count_text<&OwnGpus::critic>, [](const Grpo& grpo) { return grpo.critic; }),
    own_gpus("reference_gpus", "of the reference model alone, the same; 0: the learners'",
             count_text<&OwnGpus::reference>,
             [](const Grpo& grpo) { return grpo.reference_model; }),
    own_gpus("reward_gpus", "of the reward model alone, the same; 0: the critic's",
             count_text<&OwnGpus::reward>, [](const Grpo& grpo) { return grpo.reward_model; }),
    flag<&Grpo::park_learners>("park_learners",
                               "colocated: states are moved to host memory while engines generate "
                               "(verl's offload, NeMo-RL)")
        .when(colocated),
    word<&Grpo::park_memory>("park_memory", park_memory_names,
                             "what they wait in; pageable: new pages at every turn, as of "
                             "PyTorch's to(\"cpu\")"),
    Key<Grpo>{.facts = {.name = "vllm_sleep_level",
                        .sentence = "colocated engines while GPUs learn; 0: they stay awake and "
                                    "keep their memory; 1: weights wait in host memory; 2: they "
                                    "are given up",
                        .kind = KeyKind::whole,
                        .low = 0,
                        .high = 2,
                        .otherwise = "what the engine's file says",
                        .example = "1"},
              .read =
                  [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
                    if (table.has(facts.name)) grpo.sleep_level = table.integer(facts.name, 0, 2);
                  },
              .text =
                  [](const KeyFacts&, const Grpo& grpo) {
                    return grpo.sleep_level ? fmt::to_string(*grpo.sleep_level) : std::string();
                  },
              .matters = colocated},
};

constexpr std::array sync_keys{
    word<&Grpo::backend>("vllm_sync_backend", sync_backend_names,
                         "how weights travel to the engines"),
    word<&Grpo::protocol>("sync_protocol", sync_protocol_names,
                          "v1: a call per tensor; v2: one call; v3: engines are put to sleep; "
                          "buckets: a call per bucket of tensors (verl, slime, NeMo-RL); "
                          "host_buckets: out of the learners' host memory, loaded beside the next "
                          "broadcast (checkpoint-engine); files: a checkpoint that engines read "
                          "(prime-rl)"),
    flag<&Grpo::send_adapters>("sync_adapters",
                               "adapters alone travel: engines have what these stand beside"),
    word<&Grpo::sent>("sync_dtype", engine_bits_names, "of weights on their way to the engines"),
    word<&Grpo::broadcast>("broadcast", broadcast_shape_names,
                           "pipelined: from engine to engine; flat: a copy to each"),
    flag<&Grpo::gather_whole_model>("gather_whole_model",
                                    "all of the model is gathered on every learner before the "
                                    "first tensor is sent; false: tensor by tensor"),
    Key<Grpo>{.facts = {.name = "per_tensor_overhead",
                        .sentence = "instead of what the engine's file says",
                        .kind = KeyKind::time,
                        .otherwise = "what that file says",
                        .example = "10 ms"},
              .read =
                  [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
                    if (table.has(facts.name))
                      grpo.per_tensor_overhead = table.quantity<Seconds>(facts.name);
                  },
              .text =
                  [](const KeyFacts&, const Grpo& grpo) {
                    return grpo.per_tensor_overhead
                               ? number_text(grpo.per_tensor_overhead->value) + " s"
                               : std::string();
                  }},
    Key<Grpo>{.facts = {.name = "sync_bucket",
                        .sentence = "tensors that are sent together, instead of what the engine's "
                                    "file says",
                        .kind = KeyKind::figure,
                        .otherwise = "what that file says",
                        .example = "512 MiB"},
              .read =
                  [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
                    if (table.has(facts.name)) grpo.sync_bucket = table.quantity<Bytes>(facts.name);
                  },
              .text =
                  [](const KeyFacts&, const Grpo& grpo) {
                    return grpo.sync_bucket ? number_text(grpo.sync_bucket->value) + " B"
                                            : std::string();
                  }},
    whole<&Grpo::async_steps>("async_steps", 0, 1000,
                              "steps that generation may be ahead; 0: in turn")
        .otherwise("8, colocated 0",
                   [](Grpo& grpo) {
                     if (colocated(grpo)) grpo.async_steps = 0;
                   })
        .example("4"),
    flag<&Grpo::inflight_updates>("inflight_updates",
                                  "false: engines finish their responses before weights change")
        .otherwise("async_steps > 0",
                   [](Grpo& grpo) { grpo.inflight_updates = grpo.async_steps > 0; })
        .example("true"),
    // The code of later protocols compares a result's age with async_steps.
    flag<&Grpo::drop_stale>("drop_stale_results",
                            "results older than async_steps are not trained on")
        .otherwise("true with sync_protocol: v3",
                   [](Grpo& grpo) { grpo.drop_stale = grpo.protocol == SyncProtocol::v3; })
        .example("true"),
};

constexpr std::array batch_keys{
    whole<&Grpo::prompts>("num_unique_prompts_rollout", 1, most_pack_tokens, "groups of a step"),
    whole<&Grpo::samples>("num_samples_per_prompt_rollout", 1, most_pack_tokens,
                          "responses of a group"),
    whole<&Grpo::rollout_at_once>("micro_rollout_batch_size", 0, most_pack_tokens,
                                  "in turn: responses that a learner asks an engine for at a time, "
                                  "waits for and has scored (older OpenRLHF); 0: all at once")
        .when([](const Grpo& grpo) { return grpo.async_steps == 0; }),
    whole<&Grpo::prompt_limit>("max_prompt_token_length", 1, most_pack_tokens,
                               "longest prompt, in tokens")
        .example("512"),
    Key<Grpo>{.facts = {.name = "prompt_length",
                        .sentence = "of every prompt, in tokens; at most max_prompt_token_length",
                        .kind = KeyKind::whole,
                        .low = 1,
                        .high = static_cast<double>(most_pack_tokens),
                        .otherwise = "256 or the limit, whichever is less",
                        .example = "300"},
              .read =
                  [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
                    grpo.prompt_tokens =
                        table.integer_or(facts.name, grpo.prompt_tokens, 1, grpo.prompt_limit);
                  },
              .text = [](const KeyFacts&,
                         const Grpo& grpo) { return fmt::to_string(grpo.prompt_tokens); },
              .prepare =
                  [](Grpo& grpo) {
                    grpo.prompt_tokens = std::min<std::int64_t>(grpo.prompt_limit, 256);
                  }},
    whole<&Grpo::response_limit>("response_length", 1, most_pack_tokens,
                                 "longest response, in tokens")
        .example("2048"),
    whole<&Grpo::pack_length>("pack_length", 1, most_pack_tokens, "most tokens of a micro-batch")
        .otherwise("prompt and response, or what pack_rows of them have",
                   [](Grpo& grpo) { grpo.pack_length = grpo.model_length(); })
        .example("4096"),
    whole<&Grpo::pack_rows>("pack_rows", 0, most_pack_tokens,
                            "shares: most responses of a micro-batch, without padding; 0: as many "
                            "as pack_length holds")
        .when([](const Grpo& grpo) { return grpo.batching == Batching::shares; })
        .example("0"),
    word<&Grpo::batching>("batching", batching_names,
                          "packs: filled as responses arrive, as many for each learner, the rest "
                          "is dropped (open-instruct); shares: each learner takes as many "
                          "responses of every update (verl, NeMo-RL); rows: these padded to the "
                          "longest of a micro-batch (TRL, older OpenRLHF)")
        .otherwise("packs, colocated shares",
                   [](Grpo& grpo) {
                     grpo.batching = colocated(grpo) ? Batching::shares : Batching::packs;
                   })
        .example("packs"),
    Key<Grpo>{
        .facts = {.name = "reward_latency",
                  .sentence = "from a group's last token to its rewards",
                  .kind = KeyKind::time,
                  .example = "0.5 s"},
        .read =
            [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
              if (table.has(facts.name)) grpo.reward_latency = table.quantity<Seconds>(facts.name);
            },
        .text = [](const KeyFacts&,
                   const Grpo& grpo) { return number_text(grpo.reward_latency.value) + " s"; }},
    flag<&Grpo::sync_aborts>("sync_aborts",
                             "what is under way when weights come is begun anew behind them")
        .when([](const Grpo& grpo) { return grpo.async_steps > 0; })
        .example("false"),
    Key<Grpo>{.facts = {.name = "sync_interval",
                        .sentence = "from the end of a weight sync to the next, at least: steps in "
                                    "between go on without",
                        .kind = KeyKind::time,
                        .example = "0 s"},
              .read =
                  [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
                    if (table.has(facts.name))
                      grpo.sync_interval = table.quantity<Seconds>(facts.name);
                  },
              .text = [](const KeyFacts&,
                         const Grpo& grpo) { return number_text(grpo.sync_interval.value) + " s"; }}
        .when([](const Grpo& grpo) { return grpo.async_steps > 0; }),
    Key<Grpo>{.facts = {.name = "verify_time",
                        .sentence =
                            "of one response, where rewards are found when all of a step are there",
                        .kind = KeyKind::time,
                        .example = "10 ms"},
              .read =
                  [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
                    if (table.has(facts.name))
                      grpo.verify_time = table.quantity<Seconds>(facts.name);
                  },
              .text = [](const KeyFacts&,
                         const Grpo& grpo) { return number_text(grpo.verify_time.value) + " s"; }},
    whole<&Grpo::verifiers>("verifiers", 1, 1 << 20, "processes that share them")
        .when([](const Grpo& grpo) { return grpo.verify_time.value > 0; }),
    number<&Grpo::zero_std_fraction>("zero_std_fraction", 0, 0.95,
                                     "share of the groups whose rewards are all equal")
        .example("0.2"),
    flag<&Grpo::filter_zero_std>("filter_zero_std_samples", "such groups are not trained on"),
    flag<&Grpo::active_sampling>("active_sampling",
                                 "goes on until the batch is full of groups with a signal"),
    number<&Grpo::oversampling>("oversampling", 1, 64,
                                "groups begun for each that is trained on: engines stop when there "
                                "are enough")
        .when([](const Grpo& grpo) { return grpo.async_steps == 0; }),
    flag<&Grpo::partial_rollouts>("partial_rollouts",
                                  "what is not done then goes on in the next step; false: it is "
                                  "given up")
        .when([](const Grpo& grpo) { return grpo.oversampling > 1; }),
    whole<&Grpo::round_prompts>("prompts_per_round", 0, most_pack_tokens,
                                "in turn: groups that are asked for at a time and all waited for; "
                                "rounds follow each other until a step's groups have a signal, and "
                                "what is over is thrown away (verl's gen_batch_size, NeMo-RL's "
                                "batch_multiplier); 0: a step's, with a signal or without")
        .when([](const Grpo& grpo) { return grpo.async_steps == 0; })
        .example("0"),
    whole<&Grpo::mini_batches>("num_mini_batches", 1, 1 << 16, "optimizer steps to a batch"),
    whole<&Grpo::epochs>("num_epochs", 1, 1 << 10, "passes over a batch"),
    flag<&Grpo::reference_model>("load_ref_policy", "a frozen model runs along").example("false"),
    flag<&Grpo::park_reference>("park_reference",
                                "the frozen model waits in host memory and is copied in for every "
                                "batch (verl, NeMo-RL)"),
    flag<&Grpo::swap_reference>("swap_reference",
                                "it takes the policy's place, which is copied out and in again "
                                "(NeMo-RL)")
        .when([](const Grpo& grpo) { return grpo.park_reference; }),
    flag<&Grpo::critic>("critic",
                        "PPO: a model of the policy's size, with a number for each token in the "
                        "place of the head, finds values and is trained beside it"),
    flag<&Grpo::reward_model>("reward_model", "a frozen model of that size scores responses")
        .when([](const Grpo& grpo) { return grpo.critic; }),
    flag<&Grpo::engine_logprobs>("use_vllm_logprobs",
                                 "no extra pass of the policy before several updates"),
    flag<&Grpo::always_scores>("always_score",
                               "that pass also before a single update (verl, NeMo-RL, OpenRLHF, "
                               "slime)"),
    whole<&Grpo::hpz>("deepspeed_zpg", 1, 1 << 16,
                      "learners that share a second copy of the parameters")
        .otherwise("8, or the next lower number that divides the learners",
                   [](Grpo& grpo) { grpo.hpz = 8; })
        .example("1"),
    number<&Grpo::total_episodes>("total_episodes", 0, 1e15,
                                  "responses of the whole run; 0: not said")
        .example("100000"),
    whole<&Grpo::measured_steps>("measured_steps", 2, 100000,
                                 "steps that are simulated after a warm-up of async_steps + 2"),
};

// Nobody who leaves the lengths out has measured them: a third of the limit, and a long tail.
constexpr std::array length_keys{
    word<&Grpo::lengths, &ResponseLengths::kind>(
        "type", length_kind_names,
        "fixed: all have the mean; lognormal; empirical: drawn from a list"),
    whole<&Grpo::lengths, &ResponseLengths::seed>("seed", 0, most_pack_tokens, "of the draws"),
    Key<Grpo>{
        .facts = {.name = "list",
                  .sentence = "empirical: lengths that are drawn with equal odds, or the name of a "
                              "text file that has them",
                  .kind = KeyKind::list,
                  .example = "[120, 480, 2048]",
                  .left_out = true},
        .read =
            [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
              if (grpo.lengths.kind != LengthKind::empirical) return;
              table.texts(facts.name);  // notes that it is missing
              grpo.lengths.list = whole_numbers(table, facts.name, 1);
              if (grpo.lengths.list.empty()) grpo.lengths.list = {grpo.response_limit};
            },
        .text =
            [](const KeyFacts&, const Grpo& grpo) {
              return grpo.lengths.list.empty()
                         ? std::string()
                         : fmt::format("[{}]", fmt::join(grpo.lengths.list, ", "));
            },
        .matters = [](const Grpo& grpo) { return grpo.lengths.kind == LengthKind::empirical; }},
    Key<Grpo>{
        .facts = {.name = "mean",
                  .sentence = "in tokens, before responses are cut at their limit, or behind it; "
                              "may be a range to draw from",
                  .kind = KeyKind::number,
                  .low = 1,
                  .high = 1e7,
                  .required = true,
                  .example = "700"},
        .read =
            [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
              if (grpo.lengths.kind != LengthKind::empirical)
                grpo.lengths.mean = table.number(facts.name, facts.low, facts.high);
            },
        .text =
            [](const KeyFacts&, const Grpo& grpo) {
              const ResponseLengths& lengths = grpo.lengths;
              return number_text(lengths.mean_behind > 0 ? lengths.mean_behind : lengths.mean);
            },
        .prepare =
            [](Grpo& grpo) {
              grpo.lengths.mean = guessed_lengths.mean * static_cast<double>(grpo.response_limit);
            },
        .matters = [](const Grpo& grpo) { return grpo.lengths.kind != LengthKind::empirical; }},
    Key<Grpo>{
        .facts = {.name = "sigma",
                  .sentence = "lognormal: standard deviation of the logarithm",
                  .kind = KeyKind::number,
                  .low = 0,
                  .high = 3},
        .read =
            [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
              if (grpo.lengths.kind == LengthKind::lognormal && table.has(facts.name))
                grpo.lengths.sigma = table.number(facts.name, facts.low, facts.high);
            },
        .text = [](const KeyFacts&, const Grpo& grpo) { return number_text(grpo.lengths.sigma); },
        .matters = [](const Grpo& grpo) { return grpo.lengths.kind == LengthKind::lognormal; }},
    flag<&Grpo::lengths, &ResponseLengths::behind_limit>(
        "behind_limit",
        "lognormal: the mean is that of responses cut at the limit, as logs print it")
        .when([](const Grpo& grpo) { return grpo.lengths.kind == LengthKind::lognormal; }),
};

constexpr std::array grpo_failure_keys = joined_keys(
    failure_keys<&Grpo::failures>,
    std::array{
        time<&Grpo::failures, &Failures::start>("start", "until steps go on")
            .otherwise("what engines take to start")
            .example("10 min"),
        time<&Grpo::engine_mtbf>("engine_mtbf",
                                 "of an engine, mean: the run goes on without it until it is back")
            .otherwise("none fails")
            .example("100 h"),
        time<&Grpo::engine_start>("engine_start", "until such an engine is back")
            .otherwise("what engines take to start")
            .example("300 s"),
    });

constexpr std::array grpo_tables{
    Block<Grpo>{"", "who is where", place_keys},
    Block<Grpo>{"", "how weights get to the engines, and how far generation may be ahead",
                sync_keys},
    Block<Grpo>{"", "the batch, and how long the run is", batch_keys},
    Block<Grpo>{.name = "response_lengths",
                .sentence = "of the responses; without this block lognormal around a third of the "
                            "limit",
                .keys = length_keys},
    Block<Grpo>{.name = "failures",
                .sentence = "nodes that fail now and then, and what is left of a run's time",
                .keys = grpo_failure_keys,
                .left_out = true},
};

template <auto Member>
constexpr Key<Strategy> offload_switch(std::string_view name, std::string_view path,
                                       std::string_view sentence) {
  return Key<Strategy>{.facts = {.name = name,
                                 .sentence = sentence,
                                 .kind = KeyKind::flag,
                                 .example = "false",
                                 .decides = path},
                       .read =
                           [](const Table& table, const KeyFacts& facts, Strategy& strategy) {
                             if (table.flag_or(facts.name, false)) strategy.*Member = Offload::cpu;
                           },
                       .text = [](const KeyFacts&, const Strategy& strategy) -> std::string {
                         return strategy.*Member == Offload::none ? "false" : "true";
                       }};
}

constexpr std::array switches{
    Key<Strategy>{.facts = {.name = "deepspeed_stage",
                            .sentence = "stage of ZeRO",
                            .kind = KeyKind::whole,
                            .low = 0,
                            .high = 3,
                            .otherwise = "strategy.zero",
                            .example = "3",
                            .decides = "strategy.zero"},
                  .read =
                      [](const Table& table, const KeyFacts& facts, Strategy& strategy) {
                        if (table.has(facts.name))
                          strategy.sharding =
                              static_cast<Sharding>(table.integer(facts.name, 0, 3));
                      }},
    offload_switch<&Strategy::optimizer_place>("deepspeed_offload_optimizer",
                                               "strategy.offload.optimizer",
                                               "optimizer states are kept in host memory"),
    offload_switch<&Strategy::parameter_place>(
        "deepspeed_offload_param", "strategy.offload.parameters", "parameters wait in host memory"),
    whole<&Strategy::sequence_parallel, &SequenceParallel::ulysses>(
        "sequence_parallel_size", 1, 1 << 16, "learners that share a sequence")
        .otherwise("strategy.sequence_parallel.ulysses")
        .example("1")
        .decides("strategy.sequence_parallel.ulysses"),
    Key<Strategy>{.facts = {.name = "gradient_checkpointing",
                            .sentence = "the backward pass computes each layer again",
                            .kind = KeyKind::flag,
                            .otherwise = "strategy.checkpointing",
                            .example = "true",
                            .decides = "strategy.checkpointing"},
                  .read =
                      [](const Table& table, const KeyFacts& facts, Strategy& strategy) {
                        if (table.has(facts.name))
                          strategy.checkpointing = table.flag_or(facts.name, true)
                                                       ? Checkpointing::full
                                                       : Checkpointing::none;
                      }},
};

constexpr Block<Strategy> switch_block{
    "", "DeepSpeed's switches, which may stand in the strategy block as well", switches};

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

}  // namespace

std::span<const Block<Grpo>> grpo_blocks() {
  return grpo_tables;
}

const Block<Strategy>& grpo_switches() {
  return switch_block;
}

std::span<const std::string_view> grpo_keys_without_effect() {
  return without_effect;
}

std::vector<std::int64_t> whole_numbers(const Table& table, std::string_view key,
                                        std::int64_t low) {
  std::vector<std::int64_t> list;
  for (const std::string& text : table.texts_or(key)) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low ||
        value > most_pack_tokens)
      table.problem(key, fmt::format("expected whole numbers from {}, found {}", low, text));
    else
      list.push_back(value);
  }
  return list;
}

}  // namespace stepsim
