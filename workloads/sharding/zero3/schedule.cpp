#include "workloads/sharding/zero3/schedule.hpp"

namespace stepsim {

Zero3Schedule::Zero3Schedule(StepWriter& writer, const std::vector<Visit>& visits)
    : writer_(writer),
      visits_(visits),
      trained_(trained_tensors(visits, writer.input().strategy.zero.persistence_threshold)),
      gradients_(writer, trained_),
      gathers_(writer, visits, trained_, gradients_),
      update_(writer, trained_, gathers_) {}

void Zero3Schedule::after(std::size_t visit, bool last_micro_batch) {
  gathers_.after(visit);
  const Visit& now = visits_[visit];
  if (now.phase == Phase::backward && now.unit->trained)
    gradients_.add(*now.unit, last_micro_batch);
}

void Zero3Schedule::finish_backward(bool last_micro_batch) {
  gradients_.finish(last_micro_batch);
  gathers_.start_again();
  writer_.context.layer = -1;
  writer_.drain(writer_.input().stack.host.sync.value, Cause::gradient_reduce, "synchronize");
}

}  // namespace stepsim
