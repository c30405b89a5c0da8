// This says which of the operators that are counted in data a training step runs.
#pragma once

#include <bitset>
#include <string>
#include <string_view>

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// Says whether what stands at this name of the operators' file ("norm.kernels"), or of the
// optimizer's ("adamw.passes"), has a part in a step.
class UsedOperators {
 public:
  explicit UsedOperators(const StepInput& input);
  bool has(std::string_view name) const;

 private:
  void add(const std::vector<KernelRow>& rows);

  std::bitset<operator_names.size()> used_;
  std::string optimizer_;
  bool counts_update_ = false;  // it runs operator by operator
};

}  // namespace stepsim
