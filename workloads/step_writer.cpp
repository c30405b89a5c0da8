#include "workloads/step_writer.hpp"

#include <numeric>

namespace stepsim {
namespace {

// Kernels that a stream takes before a launch blocks. CUDA: about a thousand, measured
// (stackoverflow.com/questions/53970187). ROCm: packets of a hardware queue, the default of
// ROC_AQL_QUEUE_SIZE in its documentation.
double queue_length(const Gpu& gpu) {
  return gpu.vendor == "amd" ? 16384 : 1024;
}

}  // namespace

std::vector<CollectivePlan> step_plans(const StepInput& input) {
  Group world(input.cluster.ranks());
  std::iota(world.begin(), world.end(), Rank{0});
  const auto plan = [&](Collective kind) { return plan_collective(input.cluster, kind, {world}); };
  // Only what the strategy uses takes part in folding: the trees of a large all-reduce tell nodes
  // apart that a ring does not.
  const CollectivePlan nothing;
  const Sharding sharding = input.strategy.sharding;
  const bool sharded = sharding == Sharding::zero3 || is_fsdp(sharding);
  const Mesh mesh = mesh_of(input.strategy, input.cluster);
  const auto in_groups = [&](Collective kind, Rank size, Rank stride) {
    return plan_collective(input.cluster, kind, strided_groups(mesh.ranks, size, stride));
  };
  const CollectivePlan reduce = plan(Collective::all_reduce);
  const auto ep = static_cast<Rank>(input.strategy.expert_parallel);
  const Rank copies = input.cluster.ranks() / ep;
  const bool experts = input.model.experts && ep > 1;
  const bool offload = input.strategy.optimizer_place != Offload::none ||
                       input.strategy.parameter_place != Offload::none ||
                       input.strategy.activation_place != Offload::none;
  // Expert-parallel groups are consecutive ranks; ranks of equal place in them hold equal experts.
  const auto among = [&](Collective kind, Rank size, bool across) {
    std::vector<Group> groups(across ? size : input.cluster.ranks() / size);
    for (Rank rank = 0; rank < input.cluster.ranks(); ++rank)
      groups[across ? rank % size : rank / size].push_back(rank);
    return plan_collective(input.cluster, kind, std::move(groups));
  };
  return {
      sharding == Sharding::zero0 ? nothing : in_groups(Collective::all_gather, mesh.shard, 1),
      sharded ? in_groups(Collective::reduce_scatter, mesh.shard, 1) : nothing,
      sharded ? nothing : reduce,
      latency_only(reduce, {8}),
      experts ? among(Collective::all_to_all, ep, false) : nothing,
      experts && copies > 1 ? among(Collective::all_reduce, ep, true) : nothing,
      experts && copies > 1 ? among(Collective::all_gather, ep, true) : nothing,
      offload ? plan_copy(input.cluster, Copy::d2h, world) : nothing,
      offload ? plan_copy(input.cluster, Copy::h2d, world) : nothing,
      offload ? plan_cpu_update(input.cluster, world) : nothing,
      mesh.replicas > 1 ? in_groups(Collective::all_reduce, mesh.replicas, mesh.shard) : nothing};
}

StepWriter::StepWriter(const StepInput& input, const Traffic& traffic)
    : input_(input), mesh_(mesh_of(input.strategy, input.cluster)), builder_(traffic) {
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
  return seconds / input_.cluster.node.host.core_speed.value.value;
}

Mark StepWriter::beside(Stream stream, double bytes, Cause cause, std::string_view name,
                        std::initializer_list<Mark> after) {
  Op op = labelled(OpKind::delay, stream, cause, name);
  op.seconds = device_time(input_.cluster.gpu, input_.stack, {memory(name, bytes, 1)}, false);
  return builder_.everywhere(op, after);
}

Mark StepWriter::host(Seconds seconds, Cause cause, std::string_view name,
                      std::initializer_list<Mark> after) {
  Op op = labelled(OpKind::host, Stream::host, cause, name);
  op.seconds = seconds;
  return last_host_ = builder_.everywhere(op, after);
}

// The operation whose end makes room for so many more, unless there is room.
std::optional<Mark> StepWriter::room_in_queue(double launches) {
  launched_ += launches;
  const double done = launched_ - queue_length(input_.cluster.gpu);
  std::optional<Mark> last;
  while (finished_ < done && !queue_.empty()) {
    finished_ = queue_.front().kernels;
    last = queue_.front().compute;
    queue_.pop_front();
  }
  return last;
}

Mark StepWriter::run(const std::vector<KernelRow>& rows, bool backward, Cause cause,
                     std::string_view name) {
  const auto& host_costs = input_.stack.host;
  const Seconds launch = (backward ? host_costs.backward_launch : host_costs.forward_launch).value;
  const double core = input_.cluster.node.host.core_speed.value.value;
  const Seconds dispatch = operators_of(rows) * launch / core;
  const std::optional<Mark> room = room_in_queue(launches_of(rows));
  const Mark issued =
      room ? host(dispatch, Cause::launch, name, {*room}) : host(dispatch, Cause::launch, name);
  Op op = labelled(OpKind::compute, Stream::compute, cause, name);
  op.seconds = device_time(input_.cluster.gpu, input_.stack, rows, backward);
  op.flops.value = flops_of(rows);
  // At most a gather or two are awaited at once; a join keeps longer lists out of the operation.
  for (const Mark mark : compute_waits_)
    builder_.everywhere(labelled(OpKind::join, Stream::compute, cause, "wait"), {mark});
  compute_waits_.clear();
  last_compute_ = builder_.everywhere(op, {issued});
  queue_.push_back({last_compute_, launched_});
  return last_compute_;
}

void StepWriter::drain(Seconds seconds, Cause cause, std::string_view name) {
  host(seconds, cause, name, {last_compute_});
  queue_.clear();
  finished_ = launched_;
}

Mark StepWriter::collective(World plan, Bytes bytes, Stream stream, Cause cause,
                            std::string_view name, std::initializer_list<Mark> ready) {
  const double core = input_.cluster.node.host.core_speed.value.value;
  host(input_.stack.host.collective_launch.value / core,
       cause == Cause::gather_bytes ? Cause::gather_latency : Cause::launch, name);
  Op op = labelled(OpKind::collective, stream, cause, name);
  op.bytes = bytes;
  return builder_.collective(static_cast<std::size_t>(plan), op, Stream::host, ready);
}

Mark StepWriter::traffic(World plan, Bytes bytes, Cause cause, std::string_view name,
                         std::initializer_list<Mark> ready) {
  const double core = input_.cluster.node.host.core_speed.value.value;
  host(input_.stack.host.forward_launch.value / core, Cause::launch, name);
  const OpKind kind = plan == World::cpu_update ? OpKind::cpu : OpKind::transfer;
  const Stream stream = plan == World::to_device ? Stream::h2d : Stream::d2h;
  Op op = labelled(kind, stream, cause, name);
  op.bytes = bytes;
  return last_copy_ = builder_.collective(static_cast<std::size_t>(plan), op, Stream::host, ready);
}

void StepWriter::effect(Mark at, bool at_start, std::string_view tensor_class, double bytes,
                        Pool pool) {
  for (Rank lane = 0; lane < builder_.lanes(); ++lane)
    builder_.graph().allocate({.op = builder_.operation(at, lane),
                               .at_start = at_start,
                               .pool = pool,
                               .rank = lane,
                               .tensor_class = builder_.graph().name(tensor_class),
                               .bytes = bytes});
}

void StepWriter::allocate(Mark at, std::string_view tensor_class, double bytes, Pool pool) {
  if (bytes > 0) effect(at, true, tensor_class, bytes, pool);
}

void StepWriter::release(Mark at, std::string_view tensor_class, double bytes, Pool pool) {
  if (bytes > 0) effect(at, false, tensor_class, -bytes, pool);
}

}  // namespace stepsim
