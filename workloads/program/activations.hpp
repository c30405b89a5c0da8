// Activations wait in memory for the backward pass: kept on the device, computed again, or sent to
// host memory and fetched back.
#pragma once

#include <map>

#include "workloads/program/run_visit.hpp"

namespace stepsim {

class Activations {
 public:
  Activations(StepWriter& writer, const std::vector<Visit>& visits);

  // before() and ran() stand around the kernels of a visit; ran() is told what they left.
  void before(std::size_t visit);
  void ran(std::size_t visit, Mark compute, PartOfVisit part = PartOfVisit::all);
  // A backward pass is over: at the embedding, or where another stage goes on.
  void end_pass(Mark compute);

 private:
  // A layer's activations wait from its forward to its backward pass.
  struct Waiting {
    double inputs = 0;  // bytes
    double kept = 0;
    std::optional<Mark> away{};  // its copy to the host
    std::optional<Mark> back{};
  };
  bool travels(const Visit& visit) const;
  bool first_of_layer(std::size_t visit) const;
  bool last_of_layer(std::size_t visit) const;
  void send(std::int16_t layer, Mark compute);
  void fetch(std::int16_t layer);
  void pass_gradient(std::size_t visit, Mark compute);
  void give_up_input(double bytes, Mark compute);

  StepWriter& writer_;
  const std::vector<Visit>& visits_;
  std::map<std::int16_t, Waiting> waiting_;  // by layer
  double passed_ = 0;       // bytes of gradients that the unit that ran last backward left
  double residual_ = 0;     // of that of the residual stream
  double lingers_ = 0;      // of what was computed again and is kept by name
  double held_inputs_ = 0;  // of layers that hooks have not given up
  double waits_ = 0;        // of that of a matrix that the head shares with the embedding
};

// Returns the most that activations take beside one another.
double activation_bytes(const StepInput& input, const std::vector<Visit>& visits);

}  // namespace stepsim
