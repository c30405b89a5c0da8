#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/keys/failure_keys.hpp"
#include "scenarios/keys/key_tables.hpp"
#include "sim/base/letters.hpp"
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
constexpr Key<Grpo> own_gpus(std::string_view name,
                             std::string (*text)(const KeyFacts&, const Grpo&),
                             bool (*matters)(const Grpo&)) {
  return {.facts = {.name = name, .kind = KeyKind::number, .low = 0, .high = 1 << 20},
          .text = text,
          .matters = matters};
}

template <std::uint32_t OwnGpus::*Count>
std::string count_text(const KeyFacts&, const Grpo& grpo) {
  return fmt::to_string(grpo.own.*Count);
}

// A time that is nothing unless somebody says it.
template <Seconds Grpo::*Member>
constexpr Key<Grpo> latency(std::string_view name) {
  Key<Grpo> key = time<Member>(name);
  key.text = [](const KeyFacts&, const Grpo& grpo) {
    return number_text((grpo.*Member).value) + " s";
  };
  return key;
}

constexpr std::array place_keys{
    word<&Grpo::layout>("layout", grpo_layout_names),
    Key<Grpo>{
        .facts = {.name = "vllm_num_engines", .kind = KeyKind::whole, .low = 1, .high = 1 << 20},
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
    whole<&Grpo::tensor_parallel>("vllm_tensor_parallel_size", 1, 64),
    number<&Grpo::memory_utilization>("vllm_gpu_memory_utilization", 0.01, 1),
    word<&Grpo::weights>("vllm_quantization", engine_bits_names),
    word<&Grpo::cache>("vllm_kv_cache_dtype", engine_bits_names),
    flag<&Grpo::enforce_eager>("vllm_enforce_eager"),
    flag<&Grpo::prefix_caching>("vllm_enable_prefix_caching"),
    whole<&Grpo::admitted_samples>("inference_batch_size", 0, most_pack_tokens),
    whole<&Grpo::batched_sequences>("max_num_seqs", 1, most_pack_tokens),
    whole<&Grpo::batched_tokens>("max_num_batched_tokens", 1, most_pack_tokens)
        .prepared([](Grpo& grpo) {
          if (colocated(grpo)) grpo.batched_tokens = 8192;
        }),
    // Read where the number of nodes is known.
    Key<Grpo>{.facts = {.name = "num_learners_per_node", .kind = KeyKind::list},
              .text =
                  [](const KeyFacts&, const Grpo& grpo) {
                    return grpo.learners.empty()
                               ? std::string()
                               : fmt::format("[{}]", fmt::join(grpo.learners, ", "));
                  },
              .matters = separate},
    own_gpus("learner_gpus", nullptr, separate),
    own_gpus("critic_gpus", count_text<&OwnGpus::critic>,
             [](const Grpo& grpo) { return grpo.critic; }),
    own_gpus("reference_gpus", count_text<&OwnGpus::reference>,
             [](const Grpo& grpo) { return grpo.reference_model; }),
    own_gpus("reward_gpus", count_text<&OwnGpus::reward>,
             [](const Grpo& grpo) { return grpo.reward_model; }),
    flag<&Grpo::park_learners>("park_learners").when(colocated),
    word<&Grpo::park_memory>("park_memory", park_memory_names),
    whole<&Grpo::sleep_level>("vllm_sleep_level", 0, 2).when(colocated),
};

constexpr std::array sync_keys{
    word<&Grpo::backend>("vllm_sync_backend", sync_backend_names),
    word<&Grpo::protocol>("sync_protocol", sync_protocol_names),
    flag<&Grpo::send_adapters>("sync_adapters"),
    word<&Grpo::sent>("sync_dtype", engine_bits_names),
    word<&Grpo::broadcast>("broadcast", broadcast_shape_names),
    flag<&Grpo::gather_whole_model>("gather_whole_model"),
    time<&Grpo::per_tensor_overhead>("per_tensor_overhead"),
    Key<Grpo>{.facts = {.name = "sync_bucket", .kind = KeyKind::figure},
              .read =
                  [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
                    if (table.has(facts.name)) grpo.sync_bucket = table.quantity<Bytes>(facts.name);
                  },
              .text =
                  [](const KeyFacts&, const Grpo& grpo) {
                    return grpo.sync_bucket ? number_text(grpo.sync_bucket->value) + " B"
                                            : std::string();
                  }},
    whole<&Grpo::async_steps>("async_steps", 0, 1000).prepared([](Grpo& grpo) {
      if (colocated(grpo)) grpo.async_steps = 0;
    }),
    flag<&Grpo::inflight_updates>("inflight_updates").prepared([](Grpo& grpo) {
      grpo.inflight_updates = grpo.async_steps > 0;
    }),
    // The code of later protocols compares a result's age with async_steps.
    flag<&Grpo::drop_stale>("drop_stale_results").prepared([](Grpo& grpo) {
      grpo.drop_stale = grpo.protocol == SyncProtocol::v3;
    }),
};

constexpr std::array batch_keys{
    whole<&Grpo::prompts>("num_unique_prompts_rollout", 1, most_pack_tokens),
    whole<&Grpo::samples>("num_samples_per_prompt_rollout", 1, most_pack_tokens),
    whole<&Grpo::rollout_at_once>("micro_rollout_batch_size", 0, most_pack_tokens)
        .when([](const Grpo& grpo) { return grpo.async_steps == 0; }),
    whole<&Grpo::generate_calls>("generate_calls", 1, 1 << 16).when(colocated),
    whole<&Grpo::prompt_limit>("max_prompt_token_length", 1, most_pack_tokens),
    Key<Grpo>{.facts = {.name = "prompt_length",
                        .kind = KeyKind::whole,
                        .low = 1,
                        .high = static_cast<double>(most_pack_tokens)},
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
    whole<&Grpo::response_limit>("response_length", 1, most_pack_tokens),
    whole<&Grpo::pack_length>("pack_length", 1, most_pack_tokens).prepared([](Grpo& grpo) {
      grpo.pack_length = grpo.model_length();
    }),
    whole<&Grpo::pack_rows>("pack_rows", 0, most_pack_tokens).when([](const Grpo& grpo) {
      return grpo.batching == Batching::shares;
    }),
    word<&Grpo::batching>("batching", batching_names).prepared([](Grpo& grpo) {
      grpo.batching = colocated(grpo) ? Batching::shares : Batching::packs;
    }),
    latency<&Grpo::reward_latency>("reward_latency"),
    flag<&Grpo::sync_aborts>("sync_aborts").when([](const Grpo& grpo) {
      return grpo.async_steps > 0;
    }),
    latency<&Grpo::sync_interval>("sync_interval").when([](const Grpo& grpo) {
      return grpo.async_steps > 0;
    }),
    latency<&Grpo::verify_time>("verify_time"),
    whole<&Grpo::verifiers>("verifiers", 1, 1 << 20).when([](const Grpo& grpo) {
      return grpo.verify_time.value > 0;
    }),
    number<&Grpo::zero_std_fraction>("zero_std_fraction", 0, 0.95),
    flag<&Grpo::filter_zero_std>("filter_zero_std_samples"),
    flag<&Grpo::active_sampling>("active_sampling"),
    number<&Grpo::oversampling>("oversampling", 1, 64).when([](const Grpo& grpo) {
      return grpo.async_steps == 0;
    }),
    flag<&Grpo::partial_rollouts>("partial_rollouts").when([](const Grpo& grpo) {
      return grpo.oversampling > 1;
    }),
    whole<&Grpo::round_prompts>("prompts_per_round", 0, most_pack_tokens)
        .when([](const Grpo& grpo) { return grpo.async_steps == 0; }),
    whole<&Grpo::mini_batches>("num_mini_batches", 1, 1 << 16),
    whole<&Grpo::epochs>("num_epochs", 1, 1 << 10),
    flag<&Grpo::reference_model>("load_ref_policy"),
    flag<&Grpo::park_reference>("park_reference"),
    flag<&Grpo::swap_reference>("swap_reference").when([](const Grpo& grpo) {
      return grpo.park_reference;
    }),
    flag<&Grpo::critic>("critic"),
    flag<&Grpo::reward_model>("reward_model").when([](const Grpo& grpo) { return grpo.critic; }),
    flag<&Grpo::engine_logprobs>("use_vllm_logprobs"),
    flag<&Grpo::always_scores>("always_score"),
    whole<&Grpo::hpz>("deepspeed_zpg", 1, 1 << 16).prepared([](Grpo& grpo) { grpo.hpz = 8; }),
    number<&Grpo::total_episodes>("total_episodes", 0, 1e15),
    whole<&Grpo::measured_steps>("measured_steps", 2, 100000),
};

// Nobody who leaves the lengths out has measured them: a third of the limit, and a long tail.
constexpr std::array length_keys{
    word<&Grpo::lengths, &ResponseLengths::kind>("type", length_kind_names),
    whole<&Grpo::lengths, &ResponseLengths::seed>("seed", 0, most_pack_tokens),
    Key<Grpo>{
        .facts = {.name = "list", .kind = KeyKind::list},
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
        .facts = {.name = "mean", .kind = KeyKind::number, .low = 1, .high = 1e7, .required = true},
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
        .facts = {.name = "sigma", .kind = KeyKind::number, .low = 0, .high = 3},
        .read =
            [](const Table& table, const KeyFacts& facts, Grpo& grpo) {
              if (grpo.lengths.kind == LengthKind::lognormal && table.has(facts.name))
                grpo.lengths.sigma = table.number(facts.name, facts.low, facts.high);
            },
        .text = [](const KeyFacts&, const Grpo& grpo) { return number_text(grpo.lengths.sigma); },
        .matters = [](const Grpo& grpo) { return grpo.lengths.kind == LengthKind::lognormal; }},
    flag<&Grpo::lengths, &ResponseLengths::behind_limit>("behind_limit").when([](const Grpo& grpo) {
      return grpo.lengths.kind == LengthKind::lognormal;
    }),
};

constexpr std::array grpo_failure_keys =
    joined_keys(failure_keys<&Grpo::failures>, std::array{
                                                   time<&Grpo::failures, &Failures::start>("start"),
                                                   time<&Grpo::engine_mtbf>("engine_mtbf"),
                                                   time<&Grpo::engine_start>("engine_start"),
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
constexpr Key<Strategy> offload_switch(std::string_view name, std::string_view path) {
  return Key<Strategy>{.facts = {.name = name, .kind = KeyKind::flag, .decides = path},
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
                            .kind = KeyKind::whole,
                            .low = 0,
                            .high = 3,
                            .decides = "strategy.zero"},
                  .read =
                      [](const Table& table, const KeyFacts& facts, Strategy& strategy) {
                        if (table.has(facts.name))
                          strategy.sharding =
                              static_cast<Sharding>(table.integer(facts.name, 0, 3));
                      }},
    offload_switch<&Strategy::optimizer_place>("deepspeed_offload_optimizer",
                                               "strategy.offload.optimizer"),
    offload_switch<&Strategy::parameter_place>("deepspeed_offload_param",
                                               "strategy.offload.parameters"),
    whole<&Strategy::sequence_parallel, &SequenceParallel::ulysses>("sequence_parallel_size", 1,
                                                                    1 << 16)
        .decides("strategy.sequence_parallel.ulysses"),
    Key<Strategy>{.facts = {.name = "gradient_checkpointing",
                            .kind = KeyKind::flag,
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

constexpr auto without_effect = std::to_array<std::string_view>(
    {"temperature", "truncated_importance_sampling_ratio_cap", "beta", "backend_timeout",
     "local_eval_every", "save_freq", "checkpoint_state_freq", "mask_truncated_completions",
     "no_resampling_pass_rate", "attn_implementation", "learning_rate", "seed",
     "per_device_train_batch_size", "vllm_top_p", "clip_lower", "clip_higher"});

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
    const auto value = number_from<std::int64_t>(text);
    if (!value || *value < low || *value > most_pack_tokens)
      table.problem(key, fmt::format("expected whole numbers from {}, found {}", low, text));
    else
      list.push_back(*value);
  }
  return list;
}

}  // namespace stepsim
