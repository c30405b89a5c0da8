// This is the optimizer step of stages 0 to 2: each parameter group is one flat shard.
#pragma once

#include <optional>

#include "workloads/sharding/replicated/buckets.hpp"

namespace stepsim {

class FlatUpdate {
 public:
  FlatUpdate(StepWriter& writer, const GradientBuckets& buckets);

  double on_device() const { return on_device_; }
  // Returns what all ranks agree on before the update; nothing where each tensor was updated by
  // itself.
  std::optional<Mark> agreed_norm();
  Mark own_norm();
  // Updates the shard. `waiting` counts the bytes of the rank's own gradients, which are given up
  // as soon as they are copied; nothing of them is left behind it.
  void update(std::optional<Mark> norm, double waiting);
  // Gathers the updated 16-bit parameters; nothing overlaps it.
  void gather();

 private:
  struct Owned {
    double elements = 0, tensors = 0;
  };
  // These bytes of a shard's gradient are there while it is updated.
  struct Prepared {
    double flat = 0, fp32 = 0;
  };
  Owned owned() const;
  bool flattens() const;
  double sharers(const GradientBucket& bucket) const { return shares_ ? bucket.sharers : 1; }
  std::vector<double> group_shards() const;
  void update_group(double shard, double tensors, double waiting);
  Prepared prepare_gradient(double shard, double tensors, double waiting);
  void update_on_host(double shard);

  StepWriter& writer_;
  const GradientBuckets& buckets_;
  bool shares_ = true;    // a rank updates a part
  double on_device_ = 1;  // share of the optimizer's elements that the device updates
};

}  // namespace stepsim
