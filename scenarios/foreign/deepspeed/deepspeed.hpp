// This reads a DeepSpeed configuration file as DeepSpeed and the Hugging Face integration read it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/model/model.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// Keys that were set over a scenario with a DeepSpeed file stand over that, too: the scenario's
// text names them from then on, under this key of its strategy.
inline constexpr std::string_view deepspeed_except = "deepspeed_except";

// A key of a scenario that DeepSpeed's file may say as well, and the key there.
struct DeepSpeedRival {
  std::string_view key, theirs;
};
inline constexpr std::array deepspeed_rivals{
    DeepSpeedRival{"strategy.zero", "zero_optimization.stage"},
    DeepSpeedRival{"strategy.offload.optimizer", "zero_optimization.offload_optimizer.device"},
    DeepSpeedRival{"strategy.offload.parameters", "zero_optimization.offload_param.device"},
    DeepSpeedRival{"strategy.offload.ratio", "zero_optimization.offload_optimizer.ratio"},
    DeepSpeedRival{"strategy.offload.pipeline_read",
                   "zero_optimization.offload_optimizer.pipeline_read"},
    DeepSpeedRival{"strategy.offload.pipeline_write",
                   "zero_optimization.offload_optimizer.pipeline_write"},
    DeepSpeedRival{"strategy.offload.optimizer_buffers",
                   "zero_optimization.offload_optimizer.buffer_count"},
    DeepSpeedRival{"strategy.offload.parameter_buffers",
                   "zero_optimization.offload_param.buffer_count"},
    DeepSpeedRival{"strategy.offload.buffer_size", "zero_optimization.offload_param.buffer_size"},
    DeepSpeedRival{"strategy.offload.max_in_cpu", "zero_optimization.offload_param.max_in_cpu"},
    DeepSpeedRival{"strategy.zero_optimization.overlap_comm", "zero_optimization.overlap_comm"},
    DeepSpeedRival{"strategy.zero_optimization.reduce_bucket_size",
                   "zero_optimization.reduce_bucket_size"},
    DeepSpeedRival{"strategy.zero_optimization.sub_group_size", "zero_optimization.sub_group_size"},
    DeepSpeedRival{"strategy.zero_optimization.stage3_prefetch_bucket_size",
                   "zero_optimization.stage3_prefetch_bucket_size"},
    DeepSpeedRival{"strategy.zero_optimization.stage3_param_persistence_threshold",
                   "zero_optimization.stage3_param_persistence_threshold"},
    DeepSpeedRival{"strategy.zero_optimization.stage3_max_live_parameters",
                   "zero_optimization.stage3_max_live_parameters"},
    DeepSpeedRival{"strategy.zero_optimization.stage3_max_reuse_distance",
                   "zero_optimization.stage3_max_reuse_distance"},
    DeepSpeedRival{"strategy.zero_optimization.zero_hpz_partition_size",
                   "zero_optimization.zero_hpz_partition_size"},
    DeepSpeedRival{"strategy.zero_optimization.zero_quantized_weights",
                   "zero_optimization.zero_quantized_weights"},
    DeepSpeedRival{"strategy.zero_optimization.zero_quantized_gradients",
                   "zero_optimization.zero_quantized_gradients"},
    DeepSpeedRival{"job.micro_batch", "train_micro_batch_size_per_gpu"},
    DeepSpeedRival{"job.gradient_accumulation", "gradient_accumulation_steps"},
    DeepSpeedRival{"strategy.gradient_dtype", "data_types.grad_accum_dtype"},
    DeepSpeedRival{"strategy.optimizer", "optimizer.type"},
    DeepSpeedRival{"strategy.optimizer_kernels", "optimizer.params.torch_adam"}};

// This is what the scenario says besides. Values of the file win where it has them, but for keys
// that were set over the scenario: "strategy.zero", or "strategy.offload" with all below it.
struct DeepSpeedQuestion {
  const Strategy& strategy;
  const Job& job;
  const Model& model;
  std::int64_t ranks = 1;
  std::vector<std::string> said{};  // rivals that the scenario says
  std::vector<std::string> set{};
  std::vector<std::string> optimizers{};  // that are modelled
};

struct DeepSpeedImport {
  Strategy strategy;
  Job job;
  // Keys of the scenario whose value is the file's now, each with its line there, if it has one.
  std::vector<std::pair<std::string, int>> told;
  std::vector<std::string> notes;  // who gave way, and what makes no difference or is not modelled
};

// Returns what the file says of rivals, by the scenario's keys; nothing of a file that cannot be
// read.
std::map<std::string, std::string> deepspeed_words(const std::string& path);

// "auto" becomes what the Hugging Face integration would put there. Throws UserError on keys that
// contradict each other or the scenario.
DeepSpeedImport read_deepspeed(const std::string& path, const DeepSpeedQuestion& question);

}  // namespace stepsim
