#include "scenarios/foreign/deepspeed/deepspeed_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// Keys of stage 3 that DeepSpeed does not look at below it.
constexpr std::array only_at_stage_3{"zero_hpz_partition_size", "zero_quantized_weights",
                                     "zero_quantized_gradients", "leaf_module"};
// Known to DeepSpeed, and without effect on what is modelled.
constexpr std::array zero_without_effect{"allgather_bucket_size",
                                         "use_multi_rank_bucket_allreduce",
                                         "load_from_fp32_weights",
                                         "elastic_checkpoint",
                                         "ignore_unused_parameters",
                                         "legacy_stage1",
                                         "stage3_gather_16bit_weights_on_model_save",
                                         "stage3_gather_fp16_weights_on_model_save",
                                         "gather_16bit_weights_on_model_save",
                                         "stage3_model_persistence_threshold",
                                         "model_persistence_threshold",
                                         "memory_efficient_linear",
                                         "override_module_apply",
                                         "pipeline_loading_checkpoint",
                                         "enable_sanity_checks",
                                         "log_trace_cache_warnings",
                                         "cpu_offload_use_pin_memory"};
constexpr std::array deepspeed_without_effect{"scheduler",
                                              "gradient_clipping",
                                              "prescale_gradients",
                                              "gradient_predivide_factor",
                                              "disable_allgather",
                                              "zero_allow_untested_optimizer",
                                              "zero_force_ds_cpu_optimizer",
                                              "aio",
                                              "checkpoint",
                                              "nebula",
                                              "steps_per_print",
                                              "memory_breakdown",
                                              "dump_state",
                                              "tensorboard",
                                              "wandb",
                                              "comet",
                                              "csv_monitor",
                                              "monitor_config",
                                              "timers",
                                              "graph_harvesting",
                                              "dataloader_drop_last",
                                              "use_data_before_expert_parallelism",
                                              "local_rank"};

// These change time or memory and are not modelled; the values (between spaces) are those with
// which DeepSpeed does what is. If `inner` is named, its block counts by that key of it.
struct Unmodelled {
  std::string_view key, inner, usual;
};
constexpr std::string_view off = " false auto ", on = " true auto ", one = " 0 1 auto ";
constexpr std::string_view sixteen = " auto bf16 bfloat16 fp16 float16 ";
constexpr std::array zero_unmodelled{
    Unmodelled{"contiguous_gradients", "", on},
    Unmodelled{"reduce_scatter", "", on},
    Unmodelled{"allgather_partitions", "", on},
    Unmodelled{"stage3_module_granularity_threshold", "", " 0 auto "},
    Unmodelled{"module_granularity_threshold", "", " 0 auto "},
    Unmodelled{"stage3_use_all_reduce_for_fetch_params", "", off},
    Unmodelled{"use_all_reduce_for_fetch_params", "", off},
    Unmodelled{"stage3_allgather_sequential", "", off},
    Unmodelled{"allgather_sequential", "", off},
    Unmodelled{"zero_quantized_nontrainable_weights", "", off},
    Unmodelled{"zeropp_loco_param", "", ""},
    Unmodelled{"mics_shard_size", "", " -1 auto "},
    Unmodelled{"mics_hierarchical_params_gather", "", off},
    Unmodelled{"save_muon_momentum_buffer_in_memory", "", off}};
constexpr std::array unmodelled{
    Unmodelled{"bf16", "bf16_master_weights_and_grads", off},
    Unmodelled{"bf16", "bf16_optimizer_states", off},
    Unmodelled{"fp16", "fp16_master_weights_and_grads", off},
    Unmodelled{"amp", "enabled", off},
    Unmodelled{"torch_autocast", "enabled", off},
    Unmodelled{"sparse_gradients", "", off},
    Unmodelled{"communication_data_type", "", sixteen},
    Unmodelled{"seq_parallel_communication_data_type", "", sixteen},
    Unmodelled{"fp32_allreduce", "", off},
    Unmodelled{"activation_checkpointing", "partition_activations", off},
    Unmodelled{"activation_checkpointing", "cpu_checkpointing", off},
    Unmodelled{"wall_clock_breakdown", "", off},
    Unmodelled{"flops_profiler", "enabled", off},
    Unmodelled{"comms_logger", "enabled", off},
    Unmodelled{"elasticity", "enabled", off},
    Unmodelled{"autotuning", "enabled", off},
    Unmodelled{"compression_training", "", ""},
    Unmodelled{"quantize_training", "enabled", off},
    Unmodelled{"data_efficiency", "enabled", off},
    Unmodelled{"curriculum_learning", "enabled", off},
    Unmodelled{"progressive_layer_drop", "enabled", off},
    Unmodelled{"eigenvalue", "enabled", off},
    Unmodelled{"sparse_attention", "", ""},
    Unmodelled{"pipeline", "stages", one},
    Unmodelled{"hybrid_engine", "enabled", off},
    Unmodelled{"tensor_parallel", "autotp_size", one},
    Unmodelled{"compile", "deepcompile", off},
    Unmodelled{"sequence_parallel_size", "", one},
    Unmodelled{"weight_quantization", "", ""}};

// Blocks of other parts of DeepSpeed have keys of their own, all of them known.
void take_all(const Table& block) {
  for (const std::string& key : block.keys()) block.has(key);
}

void note_unmodelled(const Table& table, const Unmodelled& what, std::string_view prefix,
                     Notes& notes) {
  if (!table.has(what.key)) return;
  std::string path = fmt::format("{}{}", prefix, what.key), value;
  if (table.is_mapping(what.key)) {
    const Table block = table.table(what.key);
    take_all(block);
    if (!what.inner.empty()) {
      if (!block.has(what.inner)) return;
      path += fmt::format(".{}", what.inner);
      value = block.one_line(what.inner);
    }
  } else {
    value = table.one_line(what.key);
  }
  std::erase(value, '\'');
  if (!value.empty() && what.usual.find(fmt::format(" {} ", value)) != std::string_view::npos)
    return;
  notes.push_back(fmt::format("{}{}{} is not modelled; the result is without it", path,
                              value.empty() ? "" : ": ", value));
}

// "true", "false", "auto", or nothing when there is no word of it.
std::string switched(const Table& root, std::string_view block) {
  if (!root.is_mapping(block)) return "";
  const Table table = root.table(block);
  take_all(table);
  return table.text_or("enabled", "false");
}

}  // namespace

bool trains_in_32_bits(const Table& root, bool& half) {
  std::string bf16 = switched(root, "bf16");
  if (bf16.empty()) bf16 = switched(root, "bfloat16");
  const std::string fp16 = switched(root, "fp16");
  if (bf16 == "true" && fp16 == "true")
    root.problem("fp16", "is enabled beside bf16: DeepSpeed takes one of them");
  half = fp16 == "true";
  const auto sixteen_bits = [](const std::string& word) {
    return word == "true" || word == "auto";
  };
  // A file that says nothing of bf16 leaves it to the trainer, which puts in its own
  // (github.com/huggingface/accelerate, DeepSpeedPlugin.set_mixed_precision).
  return !bf16.empty() && !sixteen_bits(bf16) && !sixteen_bits(fp16);
}

namespace {

// Keys that people write at the top of the file, and that do nothing there.
struct NotAsHoped {
  std::string_view key, why;
};
constexpr std::string_view outside =
    "stands outside zero_optimization, where DeepSpeed does not look: nothing is offloaded";
constexpr std::array not_as_hoped{
    NotAsHoped{"offload_optimizer", outside}, NotAsHoped{"offload_param", outside},
    NotAsHoped{"moe",
               "is no key of DeepSpeed, and models of Hugging Face do not heed it: experts "
               "run as the model's code has them"}};

// DeepSpeed ignores keys that it does not have; one that is near to a key of it is a mistake.
void note_unknown(const Table& root, Notes& notes) {
  std::vector<std::string> known{"zero_optimization",
                                 "data_types",
                                 "optimizer",
                                 "train_batch_size",
                                 "train_micro_batch_size_per_gpu",
                                 "gradient_accumulation_steps",
                                 "bf16",
                                 "bfloat16",
                                 "fp16"};
  known.insert(known.end(), deepspeed_without_effect.begin(), deepspeed_without_effect.end());
  for (const Unmodelled& what : unmodelled) known.emplace_back(what.key);
  constexpr std::size_t most = 200;  // nobody reads on
  std::size_t count = 0;
  for (const std::string& key : root.keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    root.has(key);
    if (++count > most) continue;
    const auto hoped = std::find_if(not_as_hoped.begin(), not_as_hoped.end(),
                                    [&](const NotAsHoped& each) { return each.key == key; });
    if (hoped != not_as_hoped.end()) {
      notes.push_back(fmt::format("{} {}", key, hoped->why));
      continue;
    }
    if (const std::string near = did_you_mean(key, known); !near.empty())
      root.problem(key, "unknown key" + near);
    else
      notes.push_back(fmt::format("{} is no key of DeepSpeed, which ignores it", key));
  }
  if (count > most)
    notes.push_back(fmt::format("and {} more that are no keys of DeepSpeed", count - most));
}

}  // namespace

void note_unread(const Table& root, Notes& notes) {
  note_unknown(root, notes);
  for (const std::string_view key : deepspeed_without_effect)
    if (root.has(key)) notes.push_back(fmt::format("{} changes neither time nor memory here", key));
  for (const Unmodelled& what : unmodelled) note_unmodelled(root, what, "", notes);
}

void note_unread_of_zero(const Table& zero, const Strategy& strategy, Notes& notes) {
  for (const std::string_view key : zero_without_effect)
    if (zero.has(key))
      notes.push_back(
          fmt::format("zero_optimization.{} changes neither time nor memory here", key));
  for (const Unmodelled& what : zero_unmodelled)
    note_unmodelled(zero, what, "zero_optimization.", notes);
  if (strategy.sharding == Sharding::zero3) return;
  for (const std::string_view key : only_at_stage_3)
    if (zero.has(key))
      notes.push_back(fmt::format("zero_optimization.{} means nothing below stage 3", key));
}

}  // namespace stepsim
