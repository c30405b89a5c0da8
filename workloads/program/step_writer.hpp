// The vocabulary in which a training step is written: launch kernels, stop the host, move bytes,
// keep memory. Every word becomes operations on all lanes of the part that is written.
#pragma once

#include <array>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workloads/program/allocator.hpp"
#include "workloads/program/held.hpp"
#include "workloads/program/plans.hpp"
#include "workloads/program/program_builder.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {

// A context says what an operation is for, as every operation of a pass has it.
struct Context {
  Phase phase = Phase::forward;
  std::int16_t layer = -1;
  std::int32_t micro_batch = 0;
};

class StepWriter {
 public:
  // Into `builder`, which others may write into as well, one part of its lanes at a time.
  StepWriter(const RankPart& rank, ProgramBuilder& builder);
  // Passes what is allocated from now on through this; the host stops where memory is given back
  // and mapped anew. Without `costs` it is only counted.
  void allocate_through(Allocator& allocator, bool costs) {
    allocator_ = &allocator;
    mapping_costs_ = costs;
  }

  const RankPart& rank() const { return rank_; }
  const StepInput& input() const { return rank_.input; }
  const Mesh& mesh() const { return rank_.mesh; }
  double number_bytes() const { return input().strategy.precision.numbers; }
  // Returns the ranks that share one copy of the states.
  double sharers() const { return static_cast<double>(mesh().shard); }
  // Returns the ranks that share one copy of the states of experts that not all ranks hold.
  double expert_sharers() const { return static_cast<double>(mesh().expert_shard); }
  // Host time on this cluster's cores of what a stack's file gives for one of speed 1.
  Seconds scaled(Seconds seconds) const;
  Context context;

  // Lets the host thread spend time; afterwards it has everything named behind it.
  Mark host(Seconds seconds, Cause cause, std::string_view name,
            std::initializer_list<Mark> after = {});
  // Host time that goes with whatever it does next. What is the longer of the two names the cause
  // of both, if this has one.
  void spend(Seconds seconds, std::optional<Cause> cause = {}) {
    spent_ += seconds;
    if (cause) spent_for_ = cause;
  }
  // The host dispatches the rows, the device runs them behind whatever it waits for. No more
  // kernels are outstanding than the launch queue holds.
  Mark run(const std::vector<KernelRow>& rows, bool backward, Cause cause, std::string_view name);
  // Does the same for rows that stay where they are and as they are: what they cost is found once.
  Mark run_lasting(const std::vector<KernelRow>& rows, bool backward, Cause cause,
                   std::string_view name);
  // Small kernels on a stream of their own, beside what runs on the device and not slowed by it.
  Mark beside(Stream stream, double bytes, Cause cause, std::string_view name,
              std::initializer_list<Mark> after = {});
  // Lets the next kernels wait for this.
  void compute_after(Mark mark) { compute_waits_.push_back(mark); }
  // Takes from the next kernels what they would wait for: it belongs to a pass that goes on later.
  std::vector<Mark> set_aside() {
    handed_.reset();
    return std::exchange(compute_waits_, {});
  }
  void await_again(const std::vector<Mark>& marks) {
    compute_waits_.insert(compute_waits_.end(), marks.begin(), marks.end());
    if (!marks.empty()) handed_ = marks.back();
  }
  // Lets the next kernels wait for what ranks hand each other; what is handed on before them waits,
  // too.
  void hand_after(Mark mark) {
    compute_after(mark);
    handed_ = mark;
  }
  // When what they hand on is there: from another rank, or from the last kernel.
  Mark to_hand_on() const { return handed_.value_or(last_compute_); }
  // Lets what comes next on another stream wait, too.
  void stream_after(Stream stream, Mark mark, Cause cause) {
    builder_.everywhere(labelled(OpKind::join, stream, cause, "wait"), {mark});
  }
  // When all kernels so far are done, and all that the next one would have waited for.
  Mark compute_ready();
  // The host waits until the device has done all it was given, then spends `seconds`.
  void drain(Seconds seconds, Cause cause, std::string_view name);
  // Enqueues a collective on the host; `ready` is what produced its input.
  Mark collective(Plan plan, Bytes bytes, Stream stream, Cause cause, std::string_view name,
                  std::initializer_list<Mark> ready = {});
  // Enqueues, like a kernel, a copy or an update on the host: traffic of each rank for itself.
  Mark traffic(Plan plan, Bytes bytes, Cause cause, std::string_view name,
               std::initializer_list<Mark> ready = {});
  Mark last_compute() const { return last_compute_; }
  Mark last_copy() const { return last_copy_; }  // or update on the host
  Mark last_host() const { return last_host_; }

  // Memory that begins at a mark's start or ends at its finish, on every lane.
  void allocate(Mark at, Held held, double bytes, Pool pool = Pool::device);
  void release(Mark at, Held held, double bytes, Pool pool = Pool::device);

 private:
  // This is the cost of rows that run one after the other.
  struct Cost {
    double operators = 0, launches = 0;
    DeviceTime device{};
    Flops flops{};
  };
  Cost cost_of(const std::vector<KernelRow>& rows, bool backward) const;
  Mark run(const Cost& cost, bool backward, Cause cause, std::string_view name);
  std::optional<Mark> room_in_queue(double launches);
  Op labelled(OpKind kind, Stream stream, Cause cause, std::string_view name);
  void map_memory(Allocator::Remapped change);
  void effect(Mark at, bool at_start, Held held, double bytes, Pool pool);

  const RankPart& rank_;
  ProgramBuilder& builder_;
  std::vector<Mark> compute_waits_;
  std::optional<Mark> handed_;  // since the last kernel
  // These are costs [backward] by where the rows stand; they are looked up, never iterated.
  std::array<std::unordered_map<const std::vector<KernelRow>*, Cost>, 2> costs_;
  struct LastCollective {
    std::optional<Mark> mark;
    Stream stream = Stream::compute;
  };
  std::array<LastCollective, plan_count> communicators_{};
  // Kernels launched so far, and how many up to each operation that may still be running.
  struct Launched {
    Mark compute;
    double kernels = 0;
  };
  std::deque<Launched> queue_;
  Allocator* allocator_ = nullptr;
  bool mapping_costs_ = false;
  Seconds spent_{0};  // with the next operation of the host
  std::optional<Cause> spent_for_;
  double launched_ = 0;
  double finished_ = 0;  // of them, what the host knows to be done
  Mark last_compute_{}, last_copy_{}, last_host_{};
};

}  // namespace stepsim
