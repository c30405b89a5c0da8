// This schedules fully sharded data parallelism: one gather and one reduce-scatter per group of
// parameters, which is a layer; what stands outside the layers is a group or two of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// Returns whether parameters, gradients and states are all on the host: by CPUOffloadPolicy of the
// second version, CPUOffload of the first.
bool keeps_on_host(const Strategy& strategy);
// Bytes of a parameter that is not trained, as a rank stores it: what is trained has the type of
// the master copy; what adapters leave frozen has 16 bits, or is quantised, unless the stack loads
// all of it in fp32.
double frozen_width(const StepInput& input);

class FullyShardedGroups {
 public:
  FullyShardedGroups(StepWriter& writer, const std::vector<Visit>& visits);
  void before(std::size_t visit);
  void after(std::size_t visit, bool last_micro_batch);
  void finish_backward(bool last_micro_batch);
  void step();
  // These write the step in two, around the norm of all gradients, which all ranks agree on.
  Mark own_norm();
  void finish_step(std::optional<Mark> norm);

 private:
  struct Group {
    bool frozen = false;
    bool outside = false;  // of the layers
    bool experts = false;  // that not all ranks hold
    bool inside = false;   // called in the middle of a layer
    double units = 1;      // of the framework, gathered and reduced one after the other
    double elements = 0;
    double gathered_bytes = 0;  // as it travels
    double used_bytes = 0;      // as products take it
    double tensors = 0;
    double trained = 0;  // elements that have a gradient
    Mark arrival{};
    bool gathered = false;
    bool copied_out = false;  // version 2: what was gathered has been cut into tensors
    double unreduced = 0;     // bytes of gradients that wait for the boundary
    bool summed = false;      // the shard has a gradient, until the update
    double kept = 0;          // bytes of it on the device
  };
  // A call is what runs between a group's getting its parameters and giving them up.
  struct Call {
    std::size_t first = 0, last = 0;  // visits
    std::size_t group = 0;
    Phase phase = Phase::forward;
    bool again = false;  // later in the micro-batch the group is called once more
    bool turns = false;  // the last such call of the forward pass
  };
  bool apart(const Visit& visit) const;
  std::size_t adapter_group(const Visit& visit);
  double sharers(const Group& group) const;
  std::size_t group_of(const Visit& visit);
  void add_call(std::size_t visit, const Visit& now);
  void count(const Visit& now, Group& group);
  void begin(std::size_t number);
  void end(std::size_t number, bool last_micro_batch);
  bool stays(const Call& call, bool last_micro_batch) const;
  void gather(std::size_t call);
  Mark bring_up(const Group& group, Mark ready);
  double shard_bytes(const Group& group) const;  // as it is stored
  void limit_gathers(const Group& group);
  bool cuts_out(const Group& group) const;
  void cut_out(Group& group, Phase phase);
  void give_up_input();
  void reshard(Group& group);
  void reduce(Group& group, bool last_micro_batch);
  void keep(Group& group, Mark summed);
  void take_down(Group& group, Mark gradient);
  Mark copied_in(const Group& group);
  Mark flattened(const Group& group);
  double stored_bytes() const;
  double gathered_width() const;
  double reduce_bytes() const;
  bool of_stage() const;
  bool adds_up() const;
  void update_on_host(Seconds tensors, Mark ready);

  StepWriter& writer_;
  FsdpKeys keys_;
  std::vector<Group> groups_;
  std::map<std::uint32_t, std::size_t> adapter_groups_;  // of each instance
  std::vector<std::vector<std::size_t>> numbers_;  // [frozen][place]: group, where there is one
  std::vector<Call> calls_;
  std::size_t open_ = 0;              // the call of a layer that experts are called in
  std::vector<std::size_t> call_of_;  // [visit]: the innermost
  std::optional<Mark> copied_out_, copied_out_before_;
  std::deque<Mark> given_up_;           // version 1: last uses of groups that were resharded
  std::vector<std::size_t> held_back_;  // of a stage: groups that are resharded behind all passes
  std::optional<Mark> reduced_, kept_;  // the last gradients
  bool on_host_ = false;                // between its uses all of it
  double input_ = 0;                    // version 2: bytes of what was reduced last
  double arrived_ = 0;                  // and of what was gathered last in the forward pass
  double shard_ = 0;                    // trained elements of a rank
  double tensors_ = 0;                  // trained
};

}  // namespace stepsim
