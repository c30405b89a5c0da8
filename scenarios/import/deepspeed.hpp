// A DeepSpeed configuration file, read as DeepSpeed and the Hugging Face integration read it.
#pragma once

#include <string>
#include <vector>

#include "workloads/job.hpp"
#include "workloads/model.hpp"
#include "workloads/strategy.hpp"

namespace stepsim {

struct DeepSpeedImport {
  Strategy strategy;
  Job job;
  std::vector<std::string> notes;  // keys that change neither time nor memory here
};

// `strategy` and `job` are what the scenario says besides; values of the file win where it has
// them, and "auto" becomes what the Hugging Face integration would put there. Throws UserError on
// keys that contradict each other or the scenario.
DeepSpeedImport read_deepspeed(const std::string& path, const Strategy& strategy, const Job& job,
                               const Model& model, std::int64_t ranks);

}  // namespace stepsim
