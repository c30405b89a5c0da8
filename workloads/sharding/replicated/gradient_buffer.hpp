// Megatron's distributed optimizer (Megatron-Core, distributed/param_and_grad_buffer.py), and
// InternEvo's own, have one buffer of all gradients, to which products add; its buckets are
// reduce-scattered at the last micro-batch, and the updated parameters are gathered before the next
// forward pass needs them.
#pragma once

#include "workloads/sharding/replicated/flat_update.hpp"

namespace stepsim {

class GradientBuffer {
 public:
  GradientBuffer(StepWriter& writer, const std::vector<Visit>& visits);
  void before(std::size_t visit);
  void after(std::size_t visit, bool last_micro_batch);
  void finish_backward(bool last_micro_batch);
  void step() { finish_step(update_.agreed_norm()); }
  Mark own_norm() { return update_.own_norm(); }
  void finish_step(std::optional<Mark> norm);

 private:
  void add(const Unit& unit, bool last_micro_batch);
  void scatter(GradientBucket& bucket);
  void plan_gathers();
  void gather_bucket(std::size_t number);

  StepWriter& writer_;
  const std::vector<Visit>& visits_;
  GradientBuckets buckets_;
  FlatUpdate update_;
  Mark reduction_{};  // the last one issued
  bool outstanding_ = false;
  // The step before updated these parameters; they are listed as the forward pass meets them.
  struct Updated {
    std::size_t first_use = 0;  // visit
    double dense = 0, experts = 0;
    std::vector<Mark> arrivals{};
  };
  std::vector<Updated> updated_;
  std::size_t met_ = 0;  // of them
};

}  // namespace stepsim
