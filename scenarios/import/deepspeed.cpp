#include "scenarios/import/deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "sim/config.hpp"

namespace stepsim {
namespace {

constexpr double most = 1e15;

// A number, or what "auto" stands for.
double number_or_auto(const Table& table, std::string_view key, double fallback, double automatic) {
  if (!table.has(key)) return fallback;
  if (table.text_or(key, "") == "auto") return automatic;
  return table.number(key, 0, most);
}

bool flag_or_auto(const Table& table, std::string_view key, bool fallback) {
  if (table.has(key) && table.text_or(key, "") == "auto") return fallback;
  return table.flag_or(key, fallback);
}

// Stage-3 keys go by two names, the one without prefix being the older.
double stage3(const Table& table, std::string_view name, double fallback, double automatic) {
  const std::string prefixed = fmt::format("stage3_{}", name);
  return table.has(prefixed) ? number_or_auto(table, prefixed, fallback, automatic)
                             : number_or_auto(table, name, fallback, automatic);
}

std::optional<Offload> device_of(const Table& block) {
  const std::string device = block.choice("device", {"none", "cpu", "nvme"});
  for (const std::string_view ignored :
       {"pin_memory", "fast_init", "super_offload", "cpuadam_cores_perc"})
    block.text_or(ignored, "");
  const bool path = !block.text_or("nvme_path", "").empty();
  if (device == "nvme" && !path) block.problem("nvme_path", "is missing: device is nvme");
  if (device == "cpu") return Offload::cpu;
  return device == "nvme" ? Offload::nvme : Offload::none;
}

void read_offload(const Table& zero, Strategy& strategy, std::vector<std::string>& notes) {
  OffloadKeys& keys = strategy.offload;
  if (const auto block = zero.table_if("offload_optimizer")) {
    strategy.optimizer_place = *device_of(*block);
    keys.ratio = block->number_or("ratio", 1, 0, 1);
    keys.optimizer_buffers = block->integer_or("buffer_count", keys.optimizer_buffers, 1, 1 << 16);
    keys.pipeline_read = block->flag_or("pipeline_read", false);
    keys.pipeline_write = block->flag_or("pipeline_write", false);
    if (strategy.optimizer_place == Offload::nvme && strategy.sharding != Sharding::zero3) {
      strategy.optimizer_place = Offload::cpu;
      notes.push_back(
          "offload_optimizer.device nvme is host memory below stage 3, as in DeepSpeed");
    }
    if (keys.ratio != 1 && strategy.sharding != Sharding::zero3)
      block->problem("ratio", "a part of the optimizer needs stage 3");
  }
  if (const auto block = zero.table_if("offload_param")) {
    strategy.parameter_place = *device_of(*block);
    keys.parameter_buffers = block->integer_or("buffer_count", keys.parameter_buffers, 1, 1 << 16);
    keys.buffer_size = number_or_auto(*block, "buffer_size", keys.buffer_size, keys.buffer_size);
    keys.max_in_cpu = number_or_auto(*block, "max_in_cpu", keys.max_in_cpu, keys.max_in_cpu);
    if (strategy.parameter_place != Offload::none && strategy.sharding != Sharding::zero3)
      zero.problem("offload_param", "works with stage 3 only; DeepSpeed ignores it below");
  }
}

// Keys of stage 3 that DeepSpeed does not look at below it.
constexpr std::array only_at_stage_3{"zero_hpz_partition_size", "zero_quantized_weights",
                                     "zero_quantized_gradients",
                                     "zero_quantized_nontrainable_weights", "leaf_module"};
// Known to DeepSpeed, and without effect on what is modelled.
constexpr std::array without_effect{"allgather_partitions",
                                    "allgather_bucket_size",
                                    "load_from_fp32_weights",
                                    "elastic_checkpoint",
                                    "ignore_unused_parameters",
                                    "legacy_stage1",
                                    "stage3_gather_16bit_weights_on_model_save",
                                    "stage3_gather_fp16_weights_on_model_save",
                                    "gather_16bit_weights_on_model_save",
                                    "memory_efficient_linear",
                                    "override_module_apply",
                                    "pipeline_loading_checkpoint",
                                    "enable_sanity_checks",
                                    "log_trace_cache_warnings",
                                    "save_muon_momentum_buffer_in_memory",
                                    "cpu_offload_use_pin_memory"};

// A step with the usual value is modelled, one with another is not.
struct UsualValue {
  std::string_view key, usual;  // nothing: DeepSpeed does without it
};
constexpr std::array usual_in_zero{UsualValue{"contiguous_gradients", "true"},
                                   UsualValue{"reduce_scatter", "true"},
                                   UsualValue{"use_multi_rank_bucket_allreduce", "true"},
                                   UsualValue{"round_robin_gradients", "false"},
                                   UsualValue{"stage3_model_persistence_threshold", ""},
                                   UsualValue{"model_persistence_threshold", ""},
                                   UsualValue{"stage3_module_granularity_threshold", "0"},
                                   UsualValue{"module_granularity_threshold", "0"},
                                   UsualValue{"stage3_use_all_reduce_for_fetch_params", "false"},
                                   UsualValue{"use_all_reduce_for_fetch_params", "false"},
                                   UsualValue{"stage3_allgather_sequential", "false"},
                                   UsualValue{"allgather_sequential", "false"},
                                   UsualValue{"zeropp_loco_param", ""},
                                   UsualValue{"mics_shard_size", "-1"},
                                   UsualValue{"mics_hierarchical_params_gather", "false"},
                                   UsualValue{"zero_quantized_nontrainable_weights", "false"},
                                   UsualValue{"cpu_offload", "false"},
                                   UsualValue{"cpu_offload_params", "false"}};
constexpr std::array usual_in_root{UsualValue{"communication_data_type", ""},
                                   UsualValue{"seq_parallel_communication_data_type", ""},
                                   UsualValue{"fp32_allreduce", "false"},
                                   UsualValue{"disable_allgather", "false"},
                                   UsualValue{"prescale_gradients", "false"},
                                   UsualValue{"sparse_gradients", "false"},
                                   UsualValue{"torch_autocast", ""},
                                   UsualValue{"amp", ""},
                                   UsualValue{"tensor_parallel", ""},
                                   UsualValue{"sequence_parallel_size", "1"},
                                   UsualValue{"pipeline", ""},
                                   UsualValue{"compile", ""},
                                   UsualValue{"hybrid_engine", ""},
                                   UsualValue{"sparse_attention", ""},
                                   UsualValue{"compression_training", ""},
                                   UsualValue{"weight_quantization", ""}};

std::string no_effect(std::string_view where, std::string_view key) {
  return fmt::format("{}{} changes neither time nor memory here", where, key);
}

template <std::size_t N>
void note_unusual(const Table& table, std::string_view where, const std::array<UsualValue, N>& keys,
                  std::vector<std::string>& notes) {
  for (const auto& [key, usual] : keys) {
    if (!table.has(key)) continue;
    const std::string value = table.one_line(key);
    notes.push_back(
        value == usual || value == "auto"
            ? no_effect(where, key)
            : fmt::format("{}{}: {} is not modelled: the step is predicted {}", where, key, value,
                          usual.empty() ? "without it" : fmt::format("with {}", usual)));
  }
}

// A key of these has an effect in DeepSpeed when it says something unusual; here it has none.
void note_ignored(const Table& zero, const Strategy& strategy, std::vector<std::string>& notes) {
  constexpr std::string_view where = "zero_optimization.";
  for (const std::string_view key : without_effect)
    if (zero.has(key)) notes.push_back(no_effect(where, key));
  note_unusual(zero, where, usual_in_zero, notes);
  if (strategy.sharding == Sharding::zero3) return;
  for (const std::string_view key : only_at_stage_3)
    if (zero.has(key)) notes.push_back(fmt::format("{}{} means nothing below stage 3", where, key));
}

void read_zero(const Table& zero, Strategy& strategy, const Model& model, std::int64_t ranks,
               std::vector<std::string>& notes) {
  const double h = static_cast<double>(model.hidden);
  const std::int64_t stage = zero.integer_or("stage", 0, 0, 3);
  strategy.sharding = static_cast<Sharding>(stage);
  ZeroKeys& keys = strategy.zero;
  keys.overlap_comm = flag_or_auto(zero, "overlap_comm", stage == 3);
  keys.reduce_bucket = number_or_auto(zero, "reduce_bucket_size", keys.reduce_bucket, h * h);
  keys.sub_group = number_or_auto(zero, "sub_group_size", keys.sub_group, keys.sub_group);
  keys.prefetch_bucket = stage3(zero, "prefetch_bucket_size", keys.prefetch_bucket, 0.9 * h * h);
  keys.persistence_threshold =
      stage3(zero, "param_persistence_threshold", keys.persistence_threshold, 10 * h);
  keys.max_live = stage3(zero, "max_live_parameters", keys.max_live, keys.max_live);
  keys.max_reuse = stage3(zero, "max_reuse_distance", keys.max_reuse, keys.max_reuse);
  if (const auto leaf = zero.table_if("leaf_module")) {
    keys.leaf_modules = !leaf->texts_or("classes").empty() || !leaf->texts_or("names").empty() ||
                        !leaf->texts_or("name_suffixes").empty();
  }
  read_offload(zero, strategy, notes);
  keys.hpz = zero.integer_or("zero_hpz_partition_size", 1, 1, 1 << 20);
  keys.quantized_weights = zero.flag_or("zero_quantized_weights", false);
  keys.quantized_gradients = zero.flag_or("zero_quantized_gradients", false);
  if (stage != 3) {  // as in DeepSpeed
    keys.hpz = 1;
    keys.quantized_weights = keys.quantized_gradients = keys.leaf_modules = false;
  } else if (keys.hpz > 1 && ranks % keys.hpz != 0) {
    zero.problem("zero_hpz_partition_size",
                 fmt::format("{} does not divide {} ranks", keys.hpz, ranks));
  }
  note_ignored(zero, strategy, notes);
}

// The type in which gradients wait for the update: without a word that of the model.
void read_types(const Table& root, Strategy& strategy) {
  const auto types = root.table_if("data_types");
  if (!types) return;
  if (!types->has("grad_accum_dtype") || types->text_or("grad_accum_dtype", "") == "auto") return;
  const std::string type =
      types->choice("grad_accum_dtype", {"fp32", "float32", "bf16", "bfloat16", "fp16", "float16"});
  strategy.gradients =
      type == "fp32" || type == "float32" ? GradientType::fp32 : GradientType::bf16;
  if (strategy.gradients == GradientType::fp32 && strategy.sharding == Sharding::zero0)
    types->problem("grad_accum_dtype",
                   "differs from the model's type: DeepSpeed needs stage 1 or more");
}

std::optional<std::int64_t> count(const Table& root, std::string_view key) {
  if (!root.has(key) || root.text_or(key, "") == "auto") return std::nullopt;
  return root.integer(key, 1, 1 << 30);
}

// train_batch = micro x accumulation x ranks; any two give the third by whole division, and the
// product must hold. "auto" is what the trainer says; what is absent DeepSpeed makes up itself: one
// micro-batch to a step.
void read_batch(const Table& root, Job& job, std::int64_t ranks, std::vector<std::string>& notes) {
  constexpr std::string_view micro_key = "train_micro_batch_size_per_gpu";
  constexpr std::string_view accumulation_key = "gradient_accumulation_steps";
  const bool says_micro = root.has(micro_key), says_accumulation = root.has(accumulation_key);
  const auto batch = count(root, "train_batch_size");
  const auto third = [&](std::int64_t other) {
    return std::max<std::int64_t>(1, *batch / (other * ranks));
  };
  if (const auto micro = count(root, micro_key)) job.micro_batch = *micro;
  const std::int64_t wanted = job.accumulation;
  if (const auto accumulation = count(root, accumulation_key))
    job.accumulation = *accumulation;
  else if (batch && says_micro)
    job.accumulation = third(job.micro_batch);
  else if (!says_accumulation && (batch || says_micro))
    job.accumulation = 1;
  if (batch && !says_micro) job.micro_batch = third(job.accumulation);
  if (!says_accumulation && job.accumulation != wanted)
    notes.push_back(fmt::format("{} is absent, so DeepSpeed takes {}, not {}", accumulation_key,
                                job.accumulation, wanted));
  if (batch && job.micro_batch * job.accumulation * ranks != *batch)
    root.problem("train_batch_size",
                 fmt::format("{} is not micro batch {} x accumulation {} x {} ranks = {}", *batch,
                             job.micro_batch, job.accumulation, ranks,
                             job.micro_batch * job.accumulation * ranks));
}

// Keys of DeepSpeed that are read here, and those that are not.
constexpr std::array read_here{"zero_optimization",
                               "data_types",
                               "optimizer",
                               "train_batch_size",
                               "train_micro_batch_size_per_gpu",
                               "gradient_accumulation_steps"};
constexpr std::array not_read{"bf16",
                              "bfloat16",
                              "fp16",
                              "scheduler",
                              "gradient_clipping",
                              "gradient_predivide_factor",
                              "zero_allow_untested_optimizer",
                              "zero_force_ds_cpu_optimizer",
                              "activation_checkpointing",
                              "aio",
                              "checkpoint",
                              "nebula",
                              "steps_per_print",
                              "wall_clock_breakdown",
                              "memory_breakdown",
                              "dump_state",
                              "flops_profiler",
                              "comms_logger",
                              "tensorboard",
                              "wandb",
                              "comet",
                              "csv_monitor",
                              "monitor_config",
                              "elasticity",
                              "autotuning",
                              "quantize_training",
                              "data_efficiency",
                              "curriculum_learning",
                              "progressive_layer_drop",
                              "eigenvalue",
                              "timers",
                              "graph_harvesting",
                              "dataloader_drop_last",
                              "use_data_before_expert_parallelism",
                              "local_rank"};

// Which optimizer runs is the scenario's word; how its kernels run, DeepSpeed's, which refuses some
// together with ZeRO.
void read_optimizer(const Table& root, Strategy& strategy, std::vector<std::string>& notes) {
  const auto optimizer = root.table_if("optimizer");
  if (!optimizer) return;
  const std::string type = optimizer->text_or("type", "");
  optimizer->has("legacy_fusion");
  std::string small = type;
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool compressed = small.starts_with("onebit") || small.starts_with("zeroone");
  if (compressed && strategy.sharding != Sharding::zero0)
    optimizer->problem("type", fmt::format("{} does not work with ZeRO", type));
  const bool adam = small == "adam" || small == "adamw";
  if (!type.empty() && !adam)
    notes.push_back(
        fmt::format("optimizer.type: {} is not modelled: the update is that of "
                    "strategy.optimizer",
                    type));
  const auto parameters = optimizer->table_if("params");
  if (!parameters) return;
  for (const std::string& key : parameters->keys()) parameters->one_line(key);
  // PyTorch's own works through lists of tensors; without the word it is one fused kernel.
  if (!adam || strategy.optimizer != OptimizerKind::adamw) return;
  if (!parameters->flag_or("torch_adam", false)) return;
  if (strategy.optimizer_place == Offload::none)
    strategy.update_kernels = UpdateKernels::foreach;
  else
    notes.push_back(
        "optimizer.params.torch_adam is not modelled on the host: the update is DeepSpeed's own");
}

}  // namespace

DeepSpeedImport read_deepspeed(const std::string& path, const Strategy& strategy, const Job& job,
                               const Model& model, std::int64_t ranks) {
  const Document document = read_document(path);
  const Table root = document.root();
  DeepSpeedImport result{strategy, job, {}};
  result.strategy.zero = {};
  if (const auto zero = root.table_if("zero_optimization"))
    read_zero(*zero, result.strategy, model, ranks, result.notes);
  else
    result.strategy.sharding = Sharding::zero0;
  read_batch(root, result.job, ranks, result.notes);
  read_types(root, result.strategy);
  read_optimizer(root, result.strategy, result.notes);
  for (const std::string_view key : read_here) root.has(key);
  for (const std::string_view key : not_read)
    if (root.has(key)) result.notes.push_back(no_effect("", key));
  note_unusual(root, "", usual_in_root, result.notes);
  for (std::string& note : result.notes) note = fmt::format("{}: {}", path, note);
  document.finish();
  return result;
}

}  // namespace stepsim
