#include "workloads/program/step_writer.hpp"

#include <numeric>
#include <utility>

#include "workloads/sharding/sharding.hpp"

namespace stepsim {
namespace {

// Plans of groups whose members are `stride` apart; none where a group would be one rank.
struct Planner {
  const Cluster& cluster;
  const Mesh& mesh;

  CollectivePlan of(Collective kind, Rank size, Rank stride) const {
    return plan_collective(cluster, kind, strided_groups(mesh.ranks, size, stride));
  }
  CollectivePlan of_copies(Rank size) const {
    CollectivePlan plan = plan_ring_pass(cluster, strided_groups(mesh.ranks, size, 1));
    for (Candidate& candidate : plan.candidates)
      for (Pattern& pattern : candidate.patterns) pattern.occupancy = 0;
    return plan;
  }
  CollectivePlan if_shared(Collective kind, Rank size, Rank stride) const {
    return size > 1 ? of(kind, size, stride) : CollectivePlan{};
  }
};

}  // namespace

// Only what the strategy uses takes part in folding: the trees of a large all-reduce tell nodes
// apart that a ring does not.
std::vector<CollectivePlan> step_plans(const StepInput& input) {
  const Strategy& s = input.strategy;
  const Cluster& cluster = input.cluster;
  const Mesh mesh = mesh_of(s, cluster);
  const Planner plan{cluster, mesh};
  const CollectivePlan nothing;
  const bool sharded = s.sharding == Sharding::zero3 || is_fsdp(s.sharding);
  const bool scattered = sharded || s.distributed.used;
  const Rank apart = mesh.apart();  // ranks of a shard are so far from each other
  Group world(mesh.ranks);
  std::iota(world.begin(), world.end(), Rank{0});
  // Expert-parallel groups are neighbours; ranks of equal place in them hold equal experts.
  const bool experts = input.model.experts && mesh.experts > 1;
  const Rank beside = mesh.beside(), copies = experts ? mesh.expert_shard : 1;
  const Rank same = beside * mesh.experts;  // holders of the same experts are so far apart
  const bool once = experts && s.dispatcher == Dispatcher::deepep;
  const Rank rails = once ? mesh.expert_nodes : 1;
  const Rank inside = once ? mesh.experts / mesh.expert_nodes : 1;
  const Rank pieces = experts ? mesh.expert_tensor : 1;
  const bool offload = s.optimizer_place != Offload::none || s.parameter_place != Offload::none ||
                       s.activation_place != Offload::none;
  const bool drives = s.optimizer_place == Offload::nvme || s.parameter_place == Offload::nvme;
  const auto hpz = static_cast<Rank>(s.sharding == Sharding::zero3 ? s.zero.hpz : 1);
  const bool quantized = quantizes_gradients(s, cluster);
  const Rank in_node = cluster.gpus_per_node() / apart;
  return {
      s.sharding == Sharding::zero0 ? nothing : plan.of(Collective::all_gather, mesh.shard, apart),
      scattered ? plan.of(Collective::reduce_scatter, mesh.shard, apart) : nothing,
      scattered ? nothing : plan.of(Collective::all_reduce, mesh.shard, apart),
      latency_only(plan.of(Collective::all_reduce, mesh.ranks, 1), {8}),
      experts ? plan.of(Collective::all_to_all, mesh.experts, beside) : nothing,
      scattered ? nothing : plan.if_shared(Collective::all_reduce, copies, same),
      plan.if_shared(Collective::all_gather, copies, same),
      offload ? plan_copy(cluster, Copy::d2h, world) : nothing,
      offload ? plan_copy(cluster, Copy::h2d, world) : nothing,
      offload ? plan_cpu_update(cluster, world, host_update_of(input)) : nothing,
      plan.if_shared(Collective::all_reduce, mesh.replicas, apart * mesh.shard),
      plan.if_shared(Collective::all_reduce, mesh.tensor, 1),
      plan.if_shared(Collective::all_gather, mesh.tensor, 1),
      plan.if_shared(Collective::reduce_scatter, mesh.tensor, 1),
      plan.if_shared(Collective::all_to_all, mesh.ulysses, apart),
      mesh.ring > 1
          ? plan_ring_pass(cluster, strided_groups(mesh.ranks, mesh.ring, apart * mesh.ulysses))
          : nothing,
      plan.if_shared(Collective::all_gather, hpz, apart),
      quantized ? plan.of(Collective::all_to_all, in_node, apart) : nothing,
      quantized ? plan.of(Collective::all_to_all, mesh.shard / in_node, apart * in_node) : nothing,
      scattered ? plan.if_shared(Collective::reduce_scatter, copies, same) : nothing,
      plan.if_shared(Collective::reduce_scatter, pieces, 1),
      plan.if_shared(Collective::all_gather, pieces, 1),
      rails > 1 ? plan_exchange(cluster, strided_groups(mesh.ranks, rails, beside * inside))
                : nothing,
      inside > 1 ? plan_exchange(cluster, strided_groups(mesh.ranks, inside, beside)) : nothing,
      drives ? plan_file(cluster, FileAccess::read, world) : nothing,
      drives ? plan_file(cluster, FileAccess::write, world) : nothing,
      s.tensor_parallel.in_pieces && apart > 1 ? plan.of_copies(mesh.tensor) : nothing};
}

namespace {

Stream stream_of(World plan) {
  switch (plan) {
    case World::to_device:
      return Stream::h2d;
    case World::from_drive:
    case World::owners_from_file:
    case World::all_from_file:
      return Stream::drive_in;
    case World::to_drive:
    case World::first_to_file:
    case World::experts_to_file:
    case World::owners_to_file:
      return Stream::drive_out;
    default:
      return Stream::d2h;
  }
}

// Collectives over one group of ranks share a communicator, whatever they do.
World communicator_of(World plan) {
  switch (plan) {
    case World::reduce_scatter:
    case World::all_reduce:
      return World::all_gather;
    case World::expert_reduce:
    case World::expert_scatter:
      return World::expert_gather;
    case World::tensor_sum:
    case World::tensor_scatter:
      return World::tensor_collect;
    case World::expert_sum:
      return World::expert_collect;
    default:
      return plan;
  }
}

}  // namespace

StepWriter::StepWriter(const StepInput& input, ProgramBuilder& builder)
    : input_(input), mesh_(mesh_of(input.strategy, input.cluster)), builder_(builder) {
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
  return seconds / input_.cluster.node.host.core_speed.number();
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
  op.seconds = seconds + std::exchange(spent_, Seconds{0});
  return last_host_ = builder_.everywhere(op, after);
}

// The operation whose end makes room for so many more, unless there is room.
std::optional<Mark> StepWriter::room_in_queue(double launches) {
  launched_ += launches;
  const double done = launched_ - input_.cluster.gpu.host_launch.queue.number();
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
  const double core = input_.cluster.node.host.core_speed.number();
  const double operators = operators_of(rows, input_.stack.operators);
  const Seconds dispatch = operators * launch / core;
  const std::optional<Mark> room = room_in_queue(launches_of(rows));
  const Mark issued =
      room ? host(dispatch, Cause::launch, name, {*room}) : host(dispatch, Cause::launch, name);
  Op op = labelled(OpKind::compute, Stream::compute, cause, name);
  if (!builder_.graph().has_labels_only()) {
    op.seconds = device_time(input_.cluster.gpu, input_.stack, rows, backward);
    op.flops.value = flops_of(rows);
  }
  // At most a gather or two are awaited at once; a join keeps longer lists out of the operation.
  for (const Mark mark : compute_waits_)
    builder_.everywhere(labelled(OpKind::join, Stream::compute, cause, "wait"), {mark});
  compute_waits_.clear();
  last_compute_ = builder_.everywhere(op, {issued});
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

Mark StepWriter::collective(World plan, Bytes bytes, Stream stream, Cause cause,
                            std::string_view name, std::initializer_list<Mark> ready) {
  const double core = input_.cluster.node.host.core_speed.number();
  host(input_.stack.host.collective_launch.value / core,
       cause == Cause::gather_bytes ? Cause::gather_latency : Cause::launch, name);
  // A communicator runs one collective after the other, in the order in which the host asked for
  // them: a gather waits for the reduction that was asked for before it.
  auto& [last, last_stream] = communicators_[static_cast<std::size_t>(communicator_of(plan))];
  if (last && last_stream != stream) stream_after(stream, *last, cause);
  Op op = labelled(OpKind::collective, stream, cause, name);
  op.bytes = bytes;
  last = builder_.collective(static_cast<std::size_t>(plan), op, Stream::host, ready);
  last_stream = stream;
  return *last;
}

Mark StepWriter::traffic(World plan, Bytes bytes, Cause cause, std::string_view name,
                         std::initializer_list<Mark> ready) {
  const double core = input_.cluster.node.host.core_speed.number();
  host(input_.stack.host.forward_launch.value / core, Cause::launch, name);
  const OpKind kind = plan == World::cpu_update ? OpKind::cpu : OpKind::transfer;
  Op op = labelled(kind, stream_of(plan), cause, name);
  op.bytes = bytes;
  return last_copy_ = builder_.collective(static_cast<std::size_t>(plan), op, Stream::host, ready);
}

void StepWriter::effect(Mark at, bool at_start, std::string_view tensor_class, double bytes,
                        Pool pool) {
  const LaneRange lanes = builder_.part();
  for (Rank lane = lanes.first; lane < lanes.end; ++lane)
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
