// DeepSpeed's stages 0 to 2 reduce gradients in buckets, each by an all-reduce of which a rank
// keeps its slice.
#pragma once

#include "workloads/sharding/replicated/flat_update.hpp"

namespace stepsim {

// PyTorch's DistributedDataParallel has buckets for all gradients at once, which stay. DeepSpeed's
// stage 0 is told from it by its copies in 32 bits.
bool keeps_all_buckets(const RankPart& rank);

class ReducedBuckets {
 public:
  ReducedBuckets(StepWriter& writer, const std::vector<Visit>& visits);
  void before(std::size_t) {}
  void after(std::size_t visit, bool last_micro_batch);
  void finish_backward(bool last_micro_batch);
  void step() { finish_step(update_.agreed_norm()); }
  Mark own_norm() { return update_.own_norm(); }
  void finish_step(std::optional<Mark> norm);

 private:
  bool reduces(bool last_micro_batch) const;
  bool keeps_all_gradients() const;
  bool is_alone(const GradientBucket& bucket) const;
  bool behind_stages() const;
  bool adds_in_fp32() const;
  void update_now(double elements);
  Mark copy_to_bucket(double elements);
  Mark reduce(GradientBucket& bucket, bool last_micro_batch);
  void keep_own_gradients(Mark since);
  void add_to_own_gradients();
  void to_host(double elements, const GradientBucket& bucket, bool last_micro_batch);
  Seconds copies(double elements, double width, double tensors) const;

  StepWriter& writer_;
  const std::vector<Visit>& visits_;
  GradientBuckets buckets_;
  FlatUpdate update_;
  double buffers_ = 0;             // bytes of the buckets while they exist
  double kept_ = 0;                // bytes of gradients that wait for the update
  double owned_ = 0;               // of those reduced already
  double arriving_ = 0;            // of those that will be added to them
  bool kept_from_before_ = false;  // those of a micro-batch before
  Cost copy_alone_{};              // to the host, by one rank while no other copies
  Mark reduction_{};               // the last one issued
  bool outstanding_ = false;
};

}  // namespace stepsim
