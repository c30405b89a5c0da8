// Parameters of stage 3 are fetched module by module and ahead of their use, and given up after it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "workloads/sharding/zero3/gradients.hpp"

namespace stepsim {

class Zero3Gathers {
 public:
  Zero3Gathers(StepWriter& writer, const std::vector<Visit>& visits, const TrainedTensors& trained,
               Zero3Gradients& gradients);
  void before(std::size_t visit);
  void after(std::size_t visit);
  // The host has waited for everything; the next micro-batch begins.
  void start_again();
  // A rank's own part of tensors that are on the host; what of it is on drives is read first, as
  // soon as somebody asks for it.
  Mark to_device(double elements, Mark ready);

 private:
  enum class State : std::uint8_t { sharded, in_flight, gathered };
  double gathered_elements(const Unit& unit) const;  // those above the persistence threshold
  std::size_t gathered_tensors(const Unit& unit) const;
  struct Wanted {
    std::uint32_t instance;
    double elements, tensors;
  };
  void find_modules();
  void find_next_uses(std::size_t instances);
  int hooked_modules(std::size_t visit) const;
  void fetch_module(const Visit& now);
  void fetch_leaf(std::size_t first);
  Mark clear_buffer(double elements, Mark ready);
  void stop_for(Mark mark);
  void fetch(const std::vector<Wanted>& wanted, bool coalesced);
  Mark gather_shards(double elements, Mark ready);
  void await(std::uint32_t instance);
  void make_room(double bytes);
  void prefetch(std::size_t visit);
  bool reused_soon(std::size_t visit) const;
  void release_module(std::size_t last);
  void give_up(std::uint32_t instance, double bytes);

  StepWriter& writer_;
  const std::vector<Visit>& visits_;
  Zero3Gradients& gradients_;
  std::vector<State> state_;              // [instance]
  std::vector<Mark> arrival_;             // [instance]: its gather
  std::vector<std::size_t> batch_;        // [instance]: the number of its gather
  std::vector<std::size_t> scheduled_;    // [instance]: the last visit that the prefetch saw
  std::vector<double> uncut_;             // [gather]: bytes still to be cut out of its buffer
  double cut_ = 0;                        // bytes cut out before the next kernel
  std::vector<std::size_t> begin_, end_;  // [visit]: visits of the module that it is part of
  std::vector<double> before_;            // [visit]: elements called before it
  std::vector<std::size_t> next_use_;     // [visit]: the next call of the same parameters
  std::deque<Mark> fetches_;              // awaited; the host keeps at most two in flight
  std::optional<Mark> awaited_;           // the last that the host was stopped for
  // A gathered tensor that was given up is free once the kernels before that have run.
  struct GivenUp {
    Mark last_use;
    double bytes = 0;
  };
  std::deque<GivenUp> given_up_;
  double held_ = 0;             // bytes gathered, and not known to be free
  double room_ = 0;             // bytes that the device has for them
  std::size_t prefetched_ = 0;  // first visit not looked at yet
  double live_ = 0;             // elements gathered
  double on_drives_ = 0;        // share of the parameters
};

}  // namespace stepsim
