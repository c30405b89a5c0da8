// This writes the steps of stage 3: gathers, gradients, and the update, one beside the other.
#pragma once

#include "workloads/sharding/zero3/gathers.hpp"
#include "workloads/sharding/zero3/gradients.hpp"
#include "workloads/sharding/zero3/update.hpp"

namespace stepsim {

class Zero3Schedule {
 public:
  Zero3Schedule(StepWriter& writer, const std::vector<Visit>& visits);
  void before(std::size_t visit) { gathers_.before(visit); }
  void after(std::size_t visit, bool last_micro_batch);
  void finish_backward(bool last_micro_batch);
  void step() { update_.run(); }

 private:
  StepWriter& writer_;
  const std::vector<Visit>& visits_;
  TrainedTensors trained_;
  Zero3Gradients gradients_;
  Zero3Gathers gathers_;
  Zero3Update update_;
};

}  // namespace stepsim
