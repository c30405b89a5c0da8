// The vocabulary in which a training step is written: launch kernels, stop the host, move bytes,
// keep memory. Every word becomes operations on all lanes of the part that is written.
#pragma once

#include <array>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "topology/cluster.hpp"
#include "workloads/layers/units.hpp"
#include "workloads/program/program_builder.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/mesh.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

struct StepInput {
  const Cluster& cluster;
  const Model& model;
  const Stack& stack;
  Strategy strategy;
  Job job;
};

// The plans that a step may use, in this order, in the traffic it is written with. A signal is an
// all-reduce of a number or two: its latency is all there is to it.
enum class World : std::size_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  signal,
  exchange,       // between the ranks that share a set of experts
  expert_reduce,  // between the ranks that hold the same experts
  expert_gather,
  to_host,
  to_device,
  cpu_update,      // the optimizer on host cores, which is bound by host memory
  replica_reduce,  // between the ranks that hold the same shard
  tensor_sum,      // between the ranks that share every layer
  tensor_collect,
  tensor_scatter,
  swap_heads,        // between the ranks that share a sequence
  ring_pass,         // from each of them to the next
  secondary_gather,  // between the ranks of a secondary partition
  inside_exchange,   // quantised gradients: in the nodes, then between them
  across_exchange,
  expert_scatter,  // between the ranks that hold the same experts
  expert_sum,      // between the ranks that share each expert
  expert_collect,
  rail_exchange,  // between ranks of equal place in the nodes of an expert-parallel group
  node_exchange,  // between those of such a group that share a node
  from_drive,     // past the page cache, as fast as the drives are
  to_drive,
  tensor_pass,  // pieces of tokens from rank to rank of a layer, by the devices' copy engines
  // Of a save only; see save_plans().
  first_to_host,  // the ranks that hold one whole model between them
  first_to_file,
  experts_to_host,  // the ranks that hold one set of all experts
  experts_to_file,
  owners_to_host,  // the ranks that hold one copy of all states
  owners_to_file,
  owners_from_file,
  all_from_file,  // every rank reads the same
  share_out,      // from the first rank of a shard to the others
};
std::vector<CollectivePlan> step_plans(const StepInput& input);

// What an operation is for, as every operation of a pass has it.
struct Context {
  Phase phase = Phase::forward;
  std::int16_t layer = -1;
  std::int16_t micro_batch = 0;
};

class StepWriter {
 public:
  // Into `builder`, which others may write into as well, one part of its lanes at a time.
  StepWriter(const StepInput& input, ProgramBuilder& builder);

  const StepInput& input() const { return input_; }
  const Mesh& mesh() const { return mesh_; }
  // Ranks that share one copy of the states.
  double sharers() const { return static_cast<double>(mesh_.shard); }
  // The same of experts that not all ranks hold.
  double expert_sharers() const { return static_cast<double>(mesh_.expert_shard); }
  // Host time on this cluster's cores of what a stack's file gives for one of speed 1.
  Seconds scaled(Seconds seconds) const;
  Context context;

  // The host thread spends time; afterwards it has everything named behind it.
  Mark host(Seconds seconds, Cause cause, std::string_view name,
            std::initializer_list<Mark> after = {});
  // Host time that goes with whatever it does next.
  void spend(Seconds seconds) { spent_ += seconds; }
  // The host dispatches the rows, the device runs them behind whatever it waits for. No more
  // kernels are outstanding than the launch queue holds.
  Mark run(const std::vector<KernelRow>& rows, bool backward, Cause cause, std::string_view name);
  // Small kernels on a stream of their own, beside what runs on the device and not slowed by it.
  Mark beside(Stream stream, double bytes, Cause cause, std::string_view name,
              std::initializer_list<Mark> after = {});
  // The next kernels wait for this.
  void compute_after(Mark mark) { compute_waits_.push_back(mark); }
  // So does what comes next on another stream.
  void stream_after(Stream stream, Mark mark, Cause cause) {
    builder_.everywhere(labelled(OpKind::join, stream, cause, "wait"), {mark});
  }
  // When all kernels so far are done, and all that the next one would have waited for.
  Mark compute_ready();
  // The host waits until the device has done all it was given, then spends `seconds`.
  void drain(Seconds seconds, Cause cause, std::string_view name);
  // A collective enqueued by the host; `ready` is what produced its input.
  Mark collective(World plan, Bytes bytes, Stream stream, Cause cause, std::string_view name,
                  std::initializer_list<Mark> ready = {});
  // A copy or an update on the host: traffic of each rank for itself, enqueued like a kernel.
  Mark traffic(World plan, Bytes bytes, Cause cause, std::string_view name,
               std::initializer_list<Mark> ready = {});
  Mark last_compute() const { return last_compute_; }
  Mark last_copy() const { return last_copy_; }  // or update on the host
  Mark last_host() const { return last_host_; }

  // Memory that begins at a mark's start or ends at its finish, on every lane.
  void allocate(Mark at, std::string_view tensor_class, double bytes, Pool pool = Pool::device);
  void release(Mark at, std::string_view tensor_class, double bytes, Pool pool = Pool::device);

 private:
  std::optional<Mark> room_in_queue(double launches);
  Op labelled(OpKind kind, Stream stream, Cause cause, std::string_view name);
  void effect(Mark at, bool at_start, std::string_view tensor_class, double bytes, Pool pool);

  StepInput input_;
  Mesh mesh_;
  ProgramBuilder& builder_;
  std::vector<Mark> compute_waits_;
  struct LastCollective {
    std::optional<Mark> mark;
    Stream stream = Stream::compute;
  };
  std::array<LastCollective, static_cast<std::size_t>(World::share_out) + 1> communicators_{};
  // Kernels launched so far, and how many up to each operation that may still be running.
  struct Launched {
    Mark compute;
    double kernels = 0;
  };
  std::deque<Launched> queue_;
  Seconds spent_{0};  // with the next operation of the host
  double launched_ = 0;
  double finished_ = 0;  // of them, what the host knows to be done
  Mark last_compute_{};
  Mark last_copy_{};
  Mark last_host_{};
};

}  // namespace stepsim
