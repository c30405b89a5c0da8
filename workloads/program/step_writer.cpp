#include "workloads/program/step_writer.hpp"

#include <cmath>

#include "workloads/kernels/kernels.hpp"

namespace stepsim {
namespace {

Stream stream_of(Plan plan) {
  switch (plan) {
    case Plan::to_device:
      return Stream::h2d;
    case Plan::from_drive:
    case Plan::owners_from_file:
    case Plan::all_from_file:
      return Stream::drive_in;
    case Plan::to_drive:
    case Plan::first_to_file:
    case Plan::experts_to_file:
    case Plan::owners_to_file:
      return Stream::drive_out;
    default:
      return Stream::d2h;
  }
}

// A model's operators are called through its modules, forward by their own code and backward by
// autograd. Those of an update, and what goes around collectives, are called out of loops over
// tensors.
Seconds launch_of(const Stack::HostCosts& host, bool backward, Cause cause) {
  const bool of_model =
      cause == Cause::compute || cause == Cause::recompute || cause == Cause::tensor_parallel;
  if (!of_model) return host.plain_launch.value;
  return (backward ? host.backward_launch : host.forward_launch).value;
}

// Collectives over one group of ranks share a communicator, whatever they do.
Plan communicator_of(Plan plan) {
  switch (plan) {
    case Plan::reduce_scatter:
    case Plan::all_reduce:
    case Plan::deal_matrices:
      return Plan::all_gather;
    case Plan::expert_reduce:
    case Plan::expert_scatter:
    case Plan::deal_experts:
      return Plan::expert_gather;
    case Plan::tensor_sum:
    case Plan::tensor_scatter:
      return Plan::tensor_collect;
    case Plan::expert_sum:
      return Plan::expert_collect;
    default:
      return plan;
  }
}

}  // namespace

StepWriter::StepWriter(const RankPart& rank, ProgramBuilder& builder)
    : rank_(rank), builder_(builder) {
  last_host_ = builder_.everywhere({.kind = OpKind::join, .stream = Stream::host});
  last_compute_ = builder_.everywhere({.kind = OpKind::join, .stream = Stream::compute});
  last_copy_ = last_compute_;
}

Op StepWriter::labelled(OpKind kind, Stream stream, Cause cause, std::string_view name) {
  return {.kind = kind,
          .stream = stream,
          .phase = context.phase,
          .cause = cause,
          .layer = context.layer,
          .micro_batch = context.micro_batch,
          .name = builder_.graph().name(name)};
}

Seconds StepWriter::scaled(Seconds seconds) const {
  return seconds / input().cluster.node.host.core_speed.number();
}

Mark StepWriter::beside(Stream stream, double bytes, Cause cause, std::string_view name,
                        std::initializer_list<Mark> after) {
  Op op = labelled(OpKind::delay, stream, cause, name);
  op.seconds = device_time(input().cluster.gpu, input().stack, {memory(name, bytes, 1)}, false);
  return builder_.everywhere(op, after);
}

Mark StepWriter::host(Seconds seconds, Cause cause, std::string_view name,
                      std::initializer_list<Mark> after) {
  const std::optional<Cause> other = std::exchange(spent_for_, std::nullopt);
  Op op =
      labelled(OpKind::host, Stream::host, spent_ > seconds ? other.value_or(cause) : cause, name);
  op.seconds = seconds + std::exchange(spent_, Seconds{0});
  return last_host_ = builder_.everywhere(op, after);
}

// The operation whose end makes room for so many more, unless there is room.
std::optional<Mark> StepWriter::room_in_queue(double launches) {
  launched_ += launches;
  const double done = launched_ - input().cluster.gpu.host_launch.queue.number();
  std::optional<Mark> last;
  while (finished_ < done && !queue_.empty()) {
    finished_ = queue_.front().kernels;
    last = queue_.front().compute;
    queue_.pop_front();
  }
  return last;
}

StepWriter::Cost StepWriter::cost_of(const std::vector<KernelRow>& rows, bool backward) const {
  Cost cost{.operators = operators_of(rows, input().stack.operators),
            .launches = launches_of(rows)};
  if (builder_.graph().has_labels_only()) return cost;
  cost.device = device_times(input().cluster.gpu, input().stack, rows, backward);
  cost.flops.value = flops_of(rows);
  return cost;
}

Mark StepWriter::run(const std::vector<KernelRow>& rows, bool backward, Cause cause,
                     std::string_view name) {
  return run(cost_of(rows, backward), backward, cause, name);
}

Mark StepWriter::run_lasting(const std::vector<KernelRow>& rows, bool backward, Cause cause,
                             std::string_view name) {
  const auto [place, added] = costs_[backward ? 1 : 0].try_emplace(&rows);
  if (added) place->second = cost_of(rows, backward);
  return run(place->second, backward, cause, name);
}

Mark StepWriter::run(const Cost& cost, bool backward, Cause cause, std::string_view name) {
  const Seconds launch = launch_of(input().stack.host, backward, cause);
  const double core = input().cluster.node.host.core_speed.number();
  const Seconds dispatch = cost.operators * launch / core;
  const std::optional<Mark> room = room_in_queue(cost.launches);
  const Mark issued =
      room ? host(dispatch, Cause::launch, name, {*room}) : host(dispatch, Cause::launch, name);
  Op op = labelled(OpKind::compute, Stream::compute, cause, name);
  op.seconds = cost.device.all;
  if (op.seconds.value > 0)
    op.streaming = static_cast<std::uint8_t>(
        std::lround(streaming_parts * (1 - cost.device.arithmetic / cost.device.all)));
  op.flops = cost.flops;
  // At most a gather or two are awaited at once; a join keeps longer lists out of the operation.
  for (const Mark mark : compute_waits_)
    builder_.everywhere(labelled(OpKind::join, Stream::compute, cause, "wait"), {mark});
  compute_waits_.clear();
  last_compute_ = builder_.everywhere(op, {issued});
  handed_.reset();
  queue_.push_back({last_compute_, launched_});
  return last_compute_;
}

Mark StepWriter::compute_ready() {
  Mark ready = last_compute_;
  for (const Mark mark : compute_waits_)
    ready =
        builder_.everywhere(labelled(OpKind::join, Stream::compute, Cause::other, "wait"), {mark});
  compute_waits_.clear();
  return ready;
}

void StepWriter::drain(Seconds seconds, Cause cause, std::string_view name) {
  host(seconds, cause, name, {last_compute_});
  queue_.clear();
  finished_ = launched_;
}

Mark StepWriter::collective(Plan plan, Bytes bytes, Stream stream, Cause cause,
                            std::string_view name, std::initializer_list<Mark> ready) {
  const double core = input().cluster.node.host.core_speed.number();
  host(input().stack.host.collective_launch.value / core,
       cause == Cause::gather_bytes ? Cause::gather_latency : Cause::launch, name);
  // A communicator runs one collective after the other, in the order in which the host asked for
  // them: a gather waits for the reduction that was asked for before it.
  auto& [last, last_stream] = communicators_[index(communicator_of(plan))];
  if (last && last_stream != stream) stream_after(stream, *last, cause);
  Op op = labelled(OpKind::collective, stream, cause, name);
  op.bytes = bytes;
  last = builder_.collective(index(plan), op, Stream::host, ready);
  last_stream = stream;
  return *last;
}

Mark StepWriter::traffic(Plan plan, Bytes bytes, Cause cause, std::string_view name,
                         std::initializer_list<Mark> ready) {
  const double core = input().cluster.node.host.core_speed.number();
  host(input().stack.host.plain_launch.value / core, Cause::launch, name);
  const OpKind kind = plan == Plan::cpu_update ? OpKind::cpu : OpKind::transfer;
  Op op = labelled(kind, stream_of(plan), cause, name);
  op.bytes = bytes;
  return last_copy_ = builder_.collective(index(plan), op, Stream::host, ready);
}

void StepWriter::effect(Mark at, bool at_start, Held held, double bytes, Pool pool) {
  const LaneRange lanes = builder_.holders();
  for (Rank lane = lanes.first; lane < lanes.end; ++lane)
    builder_.graph().allocate({.op = builder_.operation(at, lane),
                               .at_start = at_start,
                               .pool = pool,
                               .rank = lane,
                               .tensor_class = builder_.graph().name(to_text(held)),
                               .bytes = bytes});
}

// The driver gives memory back when the device is done, and takes its time for each piece.
void StepWriter::map_memory(Allocator::Remapped change) {
  const Operators::Allocator& rates = input().stack.operators.allocator;
  const double rate = input().strategy.expandable_segments ? rates.map : rates.allocate;
  const Seconds seconds{(change.returned + change.mapped) / rate};
  if (change.returned > 0)
    drain(seconds, Cause::other, "map_memory");
  else
    host(seconds, Cause::other, "map_memory");
}

void StepWriter::allocate(Mark at, Held held, double bytes, Pool pool) {
  if (bytes <= 0) return;
  effect(at, true, held, bytes, pool);
  if (allocator_ == nullptr || pool != Pool::device) return;
  const Allocator::Remapped change = allocator_->take(held, bytes);
  if (mapping_costs_ && change.mapped > 0) map_memory(change);
}

void StepWriter::release(Mark at, Held held, double bytes, Pool pool) {
  if (bytes <= 0) return;
  effect(at, false, held, -bytes, pool);
  if (allocator_ != nullptr && pool == Pool::device) allocator_->give(held, bytes);
}

}  // namespace stepsim
