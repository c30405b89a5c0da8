// This is the optimizer step of stage 3, sub-group by sub-group.
#pragma once

#include <optional>

#include "workloads/sharding/zero3/gathers.hpp"

namespace stepsim {

class Zero3Update {
 public:
  Zero3Update(StepWriter& writer, const TrainedTensors& trained, Zero3Gathers& gathers);
  void run();

 private:
  void find_norms(std::size_t groups, double part);
  void update_on_device(double part);
  void update_on_host(double part, Mark ready);
  Mark read_states(double part);
  void update_from_drive(double part, bool last, Mark ready);
  void gather_persistent();

  StepWriter& writer_;
  const TrainedTensors& trained_;
  Zero3Gathers& gathers_;
  const Operators::ZeroUpdate& costs_;
  double on_drives_ = 0;         // share of the parameters
  std::optional<Mark> read_;     // states of the next sub-group on their way from the drives
  std::optional<Mark> written_;  // those of the one before on their way back
};

}  // namespace stepsim
