// Gradients of stage 3 are reduced in buckets, of which each rank gets its part of every tensor.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// This is what is trained, on all ranks together.
struct TrainedTensors {
  double parameters = 0, count = 0;
  std::vector<double> persistent;  // elements of each tensor that stays gathered, trained or not
};
TrainedTensors trained_tensors(const std::vector<Visit>& visits, double persistence_threshold);

class Zero3Gradients {
 public:
  Zero3Gradients(StepWriter& writer, const TrainedTensors& trained);

  // Adds the gradients of a unit, which are there.
  void add(const Unit& unit, bool last_micro_batch);
  void finish(bool last_micro_batch);
  // The host waits for the last reduction that is under way.
  void await();

 private:
  Mark on_reduce_stream(double bytes, double launches, std::string_view name, Mark ready);
  Mark reduce_bucket(bool last_micro_batch);
  Mark list_parts(double bytes, Mark made);
  Mark exchange_quantized(Mark ready);
  Mark to_host(Mark reduced, bool last_micro_batch);
  void update_matrices();

  StepWriter& writer_;
  const TrainedTensors& trained_;
  double on_device_ = 1;         // share of the optimizer's elements that the device updates
  std::deque<Mark> reductions_;  // under way; the host keeps at most two
  double bucket_ = 0;            // elements
  double in_matrices_ = 0;       // of them, those of matrices that are updated whole
  // The last bucket that was reduced, until the device comes to its matrices.
  struct Reduced {
    Mark done{};
    double in_matrices = 0;
  };
  std::optional<Reduced> reduced_;
  struct Waiting {
    double elements = 0;
    bool vector = false;
  };
  std::vector<Waiting> waiting_;  // the tensors in the bucket
};

}  // namespace stepsim
