// Memory before the first step is done.
#pragma once

#include <string_view>
#include <vector>

#include "sim/op_graph.hpp"
#include "workloads/program/held.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {

struct SetupChange {
  std::string_view moment;  // "fp32 copies"
  Pool pool = Pool::device;
  Held held{};
  double bytes = 0;  // negative: given back
};

// The words in which schemes say how a rank is set up.
class Setup {
 public:
  explicit Setup(const RankPart& rank) : rank_(rank) {}

  const RankPart& rank() const { return rank_; }
  const Strategy& strategy() const { return rank_.input.strategy; }
  // Names the moment of what comes from now on.
  void at(std::string_view moment) { moment_ = moment; }
  void take(Pool pool, Held held, double bytes);
  void give(Pool pool, Held held, double bytes) { take(pool, held, -bytes); }
  // Pinned memory is allocated as ordinary memory first, and then copied.
  void pin(Held held, double bytes);
  // Takes what an optimizer makes for each part of its elements, moment by moment, on the device.
  void take_states(double bytes, const std::vector<double>& parts);
  double on_device() const { return on_device_; }  // bytes taken so far

  // Each rank reads the whole model into host memory and moves it to its device.
  void load_whole(Held held, double bytes);
  // A part of the model comes to where a rank keeps it, `stored` bytes an element.
  void load_part(Held held, Pool pool, double stored);
  // A shard in parts is cast to fp32, part by part.
  void copy_masters(Pool pool, const std::vector<double>& parts);

  std::vector<SetupChange> take_changes() { return std::move(changes_); }

 private:
  void load_sharded(Held held, Pool pool, double stored);
  void partition(Held held, Pool pool, double stored);

  const RankPart& rank_;
  std::string_view moment_;
  std::vector<SetupChange> changes_;
  double on_device_ = 0;
};

// Returns all changes from nothing to what is resident, in the order of the constructors of
// DeepSpeed and FSDP: loading, flattening or partitioning, fp32 copies, gradient buffers, and the
// states that the first update creates.
std::vector<SetupChange> setup_of(const RankPart& rank);

}  // namespace stepsim
