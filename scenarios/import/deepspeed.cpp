#include "scenarios/import/deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

Offload read_device(const Table& zero, std::string_view key, Offload fallback) {
  const auto block = zero.table_if(key);
  if (!block) return fallback;
  const std::string device = block->choice("device", {"none", "cpu", "nvme"});
  if (device == "nvme") block->problem("device", "NVMe is not modelled yet; cpu is the nearest");
  for (const std::string_view ignored :
       {"pin_memory", "buffer_count", "buffer_size", "max_in_cpu", "fast_init", "pipeline_read",
        "pipeline_write", "nvme_path"})
    block->text_or(ignored, "");
  if (block->number_or("ratio", 1, 0, 1) != 1)
    block->problem("ratio", "a partial offload is not modelled yet");
  return device == "cpu" ? Offload::cpu : Offload::none;
}

void read_zero(const Table& zero, Strategy& strategy, const Model& model, std::int64_t ranks) {
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
  strategy.optimizer_place = read_device(zero, "offload_optimizer", strategy.optimizer_place);
  strategy.parameter_place = read_device(zero, "offload_param", strategy.parameter_place);
  if (strategy.parameter_place != Offload::none && stage != 3)
    zero.problem("offload_param", "works with stage 3 only; DeepSpeed ignores it below");
  keys.hpz = zero.integer_or("zero_hpz_partition_size", 1, 1, 1 << 20);
  keys.quantized_weights = zero.flag_or("zero_quantized_weights", false);
  keys.quantized_gradients = zero.flag_or("zero_quantized_gradients", false);
  if (keys.hpz > 1 && ranks % keys.hpz != 0)
    zero.problem("zero_hpz_partition_size",
                 fmt::format("{} does not divide {} ranks", keys.hpz, ranks));
}

std::optional<std::int64_t> count(const Table& root, std::string_view key) {
  if (!root.has(key) || root.text_or(key, "") == "auto") return std::nullopt;
  return root.integer(key, 1, 1 << 30);
}

// train_batch = micro x accumulation x ranks; any two give the third, and the product must hold.
void read_batch(const Table& root, Job& job, std::int64_t ranks) {
  const auto micro = count(root, "train_micro_batch_size_per_gpu");
  const auto accumulation = count(root, "gradient_accumulation_steps");
  const auto batch = count(root, "train_batch_size");
  if (micro) job.micro_batch = *micro;
  if (accumulation) job.accumulation = *accumulation;
  if (!batch) return;
  if (!accumulation)
    job.accumulation = std::max<std::int64_t>(1, *batch / (job.micro_batch * ranks));
  else if (!micro)
    job.micro_batch = std::max<std::int64_t>(1, *batch / (job.accumulation * ranks));
  if (job.micro_batch * job.accumulation * ranks != *batch)
    root.problem("train_batch_size",
                 fmt::format("{} is not micro batch {} x accumulation {} x {} ranks = {}", *batch,
                             job.micro_batch, job.accumulation, ranks,
                             job.micro_batch * job.accumulation * ranks));
}

}  // namespace

DeepSpeedImport read_deepspeed(const std::string& path, const Strategy& strategy, const Job& job,
                               const Model& model, std::int64_t ranks) {
  const Document document = read_document(path);
  const Table root = document.root();
  DeepSpeedImport result{strategy, job, {}};
  result.strategy.zero = {};
  if (const auto zero = root.table_if("zero_optimization"))
    read_zero(*zero, result.strategy, model, ranks);
  else
    result.strategy.sharding = Sharding::zero0;
  read_batch(root, result.job, ranks);
  constexpr std::array read{"zero_optimization", "train_batch_size",
                            "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"};
  for (const std::string& key : root.keys())
    if (std::find(read.begin(), read.end(), key) == read.end())
      result.notes.push_back(fmt::format("{}: {} changes neither time nor memory here", path, key));
  document.finish(Leftovers::allowed);
  return result;
}

}  // namespace stepsim
