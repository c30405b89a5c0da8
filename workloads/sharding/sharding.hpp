// When parameters are gathered, when gradients are reduced, and what the optimizer step does: one
// schedule per way of sharding. All have the same members, and write_step() is written against
// those.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "workloads/program/visits.hpp"
#include "workloads/sharding/resident.hpp"

namespace stepsim {

// Stages 0 to 2: parameters stay, gradients are reduced in buckets.
class Replicated {
 public:
  Replicated(StepWriter& writer, const std::vector<Visit>& visits);
  void before(std::size_t visit);
  void after(std::size_t visit, bool last_micro_batch);
  void finish_backward(bool last_micro_batch);
  void step();
  // The step in two, around the number that all ranks agree on: the norm of all gradients.
  Mark own_norm();
  void finish_step(std::optional<Mark> norm);

 private:
  // Gradients that are reduced together: experts go to those ranks that hold the same ones.
  struct Bucket {
    double waiting = 0;     // elements
    double parameters = 0;  // elements in all
    double vectors = 0;     // of them in norms: they do not decay, and are a group of their own
    double tensors = 0;
    double sharers = 1;  // ranks
  };
  Bucket& bucket_of(const Unit& unit);
  bool reduces(bool last_micro_batch) const;
  bool keeps_all_gradients() const;
  void update_now(double elements);
  Mark copy_to_bucket(double elements);
  void add_to_buffer(const Unit& unit, bool last_micro_batch);
  void scatter(Bucket& bucket);
  void scatter_rest();
  void plan_gathers();
  void gather_bucket(std::size_t number);
  Mark reduce(Bucket& bucket, bool last_micro_batch);
  void keep_own_gradients(Mark since);
  void give_up_gradients(Mark at);
  void to_host(double elements, const Bucket& bucket, bool last_micro_batch);
  std::vector<double> group_shards() const;
  struct Owned {
    double elements = 0, tensors = 0;
  };
  Owned owned() const;
  void update_group(double shard, double tensors);
  void update_on_host(double shard);
  void gather_updated();

  StepWriter& writer_;
  const std::vector<Visit>& visits_;
  Bucket dense_, experts_;
  double buffers_ = 0;  // bytes of the buckets while they exist
  double kept_ = 0;     // bytes of gradients that wait for the update
  double owned_ = 0;    // of those reduced already
  bool split_experts_ = false;
  double here_ = 1;   // share of the optimizer's elements that the device updates
  Mark reduction_{};  // the last one issued
  bool outstanding_ = false;
  // Parameters that the step before updated, as the forward pass meets them.
  struct Updated {
    std::size_t first_use = 0;  // visit
    double dense = 0, experts = 0;
    std::vector<Mark> arrivals{};
  };
  std::vector<Updated> updated_;
  std::size_t met_ = 0;  // of them
};

// Stage 3: every module gathers its parameters before it runs and gives them up after.
class Zero3 {
 public:
  Zero3(StepWriter& writer, const std::vector<Visit>& visits);
  void before(std::size_t visit);
  void after(std::size_t visit, bool last_micro_batch);
  void finish_backward(bool last_micro_batch);
  void step();

 private:
  enum class State : std::uint8_t { sharded, in_flight, gathered };
  double gathered_elements(const Unit& unit) const;  // those above the persistence threshold
  std::size_t gathered_tensors(const Unit& unit) const;
  struct Wanted {
    std::uint32_t instance;
    double elements;
  };
  void find_modules();
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
  Mark on_reduce_stream(double bytes, double launches, std::string_view name, Mark ready);
  Mark reduce_bucket(bool last_micro_batch);
  Mark list_parts(double bytes, Mark made);
  Mark exchange_quantized(Mark ready);
  Mark to_host(Mark reduced, bool last_micro_batch);
  Mark to_device(double elements, Mark ready);
  void update_on_device(double part);
  void update_on_host(double part, Mark ready);
  Mark read_states(double part);
  void update_from_drive(double part, bool last, Mark ready);
  void gather_persistent();

  StepWriter& writer_;
  const std::vector<Visit>& visits_;
  std::vector<State> state_;              // [instance]
  std::vector<Mark> arrival_;             // [instance]: its gather
  std::vector<std::size_t> batch_;        // [instance]: the number of its gather
  std::vector<std::size_t> scheduled_;    // [instance]: the last visit that the prefetch saw
  std::vector<double> uncut_;             // [gather]: bytes still to be cut out of its buffer
  double cut_ = 0;                        // bytes cut out before the next kernel
  std::vector<std::size_t> begin_, end_;  // [visit]: visits of the module that it is part of
  std::vector<double> persistent_;        // elements of each tensor that stays gathered
  std::vector<double> before_;            // [visit]: elements called before it
  std::vector<std::size_t> next_use_;     // [visit]: the next call of the same parameters
  std::deque<Mark> fetches_;              // awaited; the host keeps at most two in flight
  std::optional<Mark> awaited_;           // the last that the host was stopped for
  std::deque<Mark> reductions_;           // and at most two of these
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
  double bucket_ = 0;
  struct Waiting {
    double elements = 0;
    bool vector = false;
  };
  std::vector<Waiting> waiting_;  // the tensors in the bucket
  double far_ = 0;                // share of the parameters on drives
  double here_ = 1;               // share of the optimizer's elements that the device updates
  std::optional<Mark> read_;      // states of the next sub-group on their way from the drives
  std::optional<Mark> written_;   // those of the one before on their way back
  double parameters_ = 0;
  double tensors_ = 0;
};

// What the host spends when a tensor's gradient is there; `tensors` are all of the model.
Seconds gradient_hook(const StepInput& input, double tensors);

// How fast the host updates, and the host memory traffic of a parameter.
HostUpdate host_update_of(const StepInput& input);
double host_adam_bytes(const StepInput& input);

// The host cores update a shard when `ready` is done; the host thread waits for it.
Mark update_shard_on_host(StepWriter& writer, double elements, Mark ready);

// What one call of the optimizer updates: a flat shard is one tensor.
struct UpdatedTensors {
  double elements = 0;  // of all
  double tensors = 1;
  double largest = 0;  // elements of one
};
struct UpdateCost {
  double launches = 0;
  double dispatches = 0;  // operators of the host
  double more_bytes = 0;  // of traffic, than one kernel has that does everything
  double temporary = 0;   // bytes of device memory while it runs
};
UpdateCost update_cost(const Operators::AdamW& adamw, const Strategy& strategy,
                       const UpdatedTensors& of);
// Its kernels, and `others` around them: norms, scales, casts.
KernelRow update_row(const UpdateCost& cost, double bytes, double others);
// Behind each tensor bitsandbytes stops the host until the device is done.
void stop_behind_update(StepWriter& writer, double tensors);

// Bytes of device memory per element that the optimizer keeps beside the parameters, and that one
// update reads and writes.
double optimizer_state_bytes(OptimizerKind kind);
double optimizer_traffic_bytes(const Strategy& strategy);

}  // namespace stepsim
