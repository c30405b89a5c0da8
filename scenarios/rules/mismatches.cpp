#include <fmt/format.h>

#include "scenarios/rules/rules.hpp"
#include "sim/base/lists.hpp"
#include "workloads/layers/precision_units.hpp"

namespace stepsim {

std::vector<std::string> mismatches(const Scenario& scenario) {
  std::vector<std::string> notes;
  const Gpu& gpu = scenario.cluster.gpu;
  const std::string& vendor = scenario.stack.vendor;
  if (!vendor.empty() && vendor != gpu.vendor)
    notes.push_back(fmt::format("stack {} has the costs of a host of {} GPUs, and {} is of {}",
                                scenario.stack.name, vendor, gpu.name, gpu.vendor));
  if (scenario.strategy.attention == AttentionKernel::flash3 && !gpu.attention.later)
    notes.push_back(fmt::format("{} has no flash3 in its file: it is taken as flash", gpu.name));
  else if (holds(scenario.said, "strategy.attention", &SaidKey::path) &&
           scenario.strategy.attention == AttentionKernel::flash3 &&
           !gpu.attention.later_name.empty())
    notes.push_back(fmt::format("{} has no FlashAttention-3: flash3 stands for {}", gpu.name,
                                gpu.attention.later_name));
  if (loses_type_again(scenario.stack, scenario.strategy))
    notes.push_back(fmt::format(
        "{} holds for the first forward pass alone where layers are computed again: PyTorch's "
        "checkpointing calls the modules outside of their autocast, and the backward pass follows "
        "in 16 bits{}",
        scenario.strategy.precision.name,
        scenario.strategy.reentrant.value_or(scenario.stack.reentrant)
            ? ""
            : "; this is use_reentrant: true, and the other way ends with an error"));
  if (ends_in_recomputation(scenario.stack, scenario.strategy))
    notes.push_back(fmt::format(
        "{}: PyTorch's recomputation by operators calls the modules outside of their autocast, "
        "finds tensors of another type and ends the run",
        scenario.strategy.precision.name));
  if (!scenario.model.stored_as.empty())
    notes.push_back(fmt::format(
        "quantization_config ({}) of {} is not modelled: its weights count 16 bits each",
        scenario.model.stored_as, scenario.model.name));
  return notes;
}

}  // namespace stepsim
