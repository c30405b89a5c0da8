// Gradients that are reduced together, of stages 0 to 2: experts go to those ranks that hold the
// same ones.
#pragma once

#include <array>

#include "workloads/program/step_writer.hpp"

namespace stepsim {

struct GradientBucket {
  double waiting = 0;     // elements
  double parameters = 0;  // elements in all
  double vectors = 0;     // of them in norms: they do not decay, and are a group of their own
  double tensors = 0;
  double sharers = 1;  // ranks
};

class GradientBuckets {
 public:
  GradientBuckets(const StepWriter& writer, const std::vector<Visit>& visits);

  GradientBucket& of(const Unit& unit);
  bool is_of_experts(const GradientBucket& bucket) const { return &bucket == &experts; }
  std::array<GradientBucket*, 2> all() { return {&dense, &experts}; }
  std::array<const GradientBucket*, 2> all() const { return {&dense, &experts}; }
  double tensors() const { return dense.tensors + experts.tensors; }

  GradientBucket dense, experts;

 private:
  bool splits_experts_ = false;
};

}  // namespace stepsim
