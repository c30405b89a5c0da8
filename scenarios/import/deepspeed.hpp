// A DeepSpeed configuration file, read as DeepSpeed and the Hugging Face integration read it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/model/model.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// Keys of a scenario that DeepSpeed's file may say as well.
inline constexpr std::array<std::string_view, 24> deepspeed_rivals{
    "job.micro_batch",
    "job.gradient_accumulation",
    "strategy.zero",
    "strategy.gradient_dtype",
    "strategy.optimizer_kernels",
    "strategy.offload.optimizer",
    "strategy.offload.parameters",
    "strategy.offload.ratio",
    "strategy.offload.pipeline_read",
    "strategy.offload.pipeline_write",
    "strategy.offload.optimizer_buffers",
    "strategy.offload.parameter_buffers",
    "strategy.offload.buffer_size",
    "strategy.offload.max_in_cpu",
    "strategy.zero_optimization.overlap_comm",
    "strategy.zero_optimization.reduce_bucket_size",
    "strategy.zero_optimization.sub_group_size",
    "strategy.zero_optimization.stage3_prefetch_bucket_size",
    "strategy.zero_optimization.stage3_param_persistence_threshold",
    "strategy.zero_optimization.stage3_max_live_parameters",
    "strategy.zero_optimization.stage3_max_reuse_distance",
    "strategy.zero_optimization.zero_hpz_partition_size",
    "strategy.zero_optimization.zero_quantized_weights",
    "strategy.zero_optimization.zero_quantized_gradients"};

// What the scenario says besides. Values of the file win where it has them, but for keys that were
// set over the scenario: "strategy.zero", or "strategy.offload" with all below it.
struct DeepSpeedQuestion {
  const Strategy& strategy;
  const Job& job;
  const Model& model;
  std::int64_t ranks = 1;
  std::vector<std::string> said{};  // rivals that the scenario says
  std::vector<std::string> set{};
};

struct DeepSpeedImport {
  Strategy strategy;
  Job job;
  std::vector<std::string> notes;  // who gave way, and what makes no difference or is not modelled
};

// "auto" becomes what the Hugging Face integration would put there. Throws UserError on keys that
// contradict each other or the scenario.
DeepSpeedImport read_deepspeed(const std::string& path, const DeepSpeedQuestion& question);

}  // namespace stepsim
