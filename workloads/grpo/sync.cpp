#include "workloads/grpo/sync.hpp"

#include <algorithm>

#include "workloads/collectives/plan.hpp"

namespace stepsim {
namespace {

Group receivers(const SyncInput& input) {
  Group group{input.placement.learners.front()};
  if (input.grpo.layout == GrpoLayout::colocated) return group;  // the weights are there already
  for (const Group& engine : input.placement.engines)
    group.insert(group.end(), engine.begin(), engine.end());
  return group;
}

// A candidate of a schedule that no library's table lists.
CollectivePlan plan_of(const SyncInput& input, const Group& group, const Schedule& schedule,
                       std::string_view name) {
  CollectivePlan plan{Collective::broadcast, {group}, {}};
  Candidate candidate{std::string(name), "simple", {}, {}};
  candidate.patterns.push_back(make_pattern(input.cluster, schedule, group, name, "simple"));
  candidate.cost = cost_of(input.cluster, candidate.patterns);
  plan.candidates.push_back(std::move(candidate));
  return plan;
}

ScheduleRound round_of(std::vector<Leg> legs) {
  return {{0, 1, 0}, std::move(legs)};
}

// The root sends a copy to each, all at once.
Schedule flat(const Group& group) {
  std::vector<Leg> legs;
  for (std::size_t i = 1; i < group.size(); ++i)
    legs.push_back({.source = group.front(), .target = group[i], .share = 1});
  return {round_of(std::move(legs))};
}

// Gloo: whoever has it sends the whole of it on, to twice as many in every round.
Schedule binomial(const Group& group) {
  Schedule schedule;
  for (std::size_t have = 1; have < group.size(); have *= 2) {
    std::vector<Leg> legs;
    for (std::size_t i = 0; i < have && i + have < group.size(); ++i)
      legs.push_back({.source = group[i], .target = group[i + have], .share = 1});
    schedule.push_back(round_of(std::move(legs)));
  }
  return schedule;
}

CollectivePlan gloo_plan(const SyncInput& input, const Group& group) {
  CollectivePlan plan = plan_of(input, group, binomial(group), "broadcast gloo");
  for (Pattern& pattern : plan.candidates.front().patterns) {
    pattern.occupancy = 0;  // through host memory
    for (Round& round : pattern.rounds)
      for (Flow& flow : round.flows) flow.rate_cap = input.stack.sync.stream.value.value;
  }
  return plan;
}

std::vector<double> sizes_of(const std::vector<Module>& modules) {
  std::vector<double> bytes;
  for (const Module& module : modules)
    for (const Tensor& tensor : module.tensors)
      bytes.push_back(bytes_16 * static_cast<double>(tensor.elements));
  return bytes;
}

constexpr std::size_t gather_traffic = 0, broadcast_traffic = 1, pinned_traffic = 2,
                      states_traffic = 4;  // each out, and in behind that

// Out to pages that are new, and in through the driver's own pinned buffers.
CollectivePlan through_pages(const SyncInput& input, CollectivePlan plan, Copy direction) {
  Candidate& copy = plan.candidates.front();
  const double rate = direction == Copy::d2h
                          ? input.stack.sleep.page.number()
                          : input.cluster.node.host.pageable.number() / copy.cost.per_byte;
  for (Pattern& pattern : copy.patterns)
    for (Round& round : pattern.rounds)
      for (Flow& flow : round.flows) flow.rate_cap = rate;
  copy.cost.per_byte = std::max(copy.cost.per_byte, 1 / rate);
  return plan;
}

void add_copies(const SyncInput& input, ParkMemory memory, std::vector<CollectivePlan>& plans) {
  for (const Copy direction : {Copy::d2h, Copy::h2d}) {
    CollectivePlan plan = plan_copy(input.cluster, direction, input.placement.learners);
    if (memory == ParkMemory::pageable) plan = through_pages(input, std::move(plan), direction);
    plans.push_back(std::move(plan));
  }
}

class SyncWriter {
 public:
  SyncWriter(const SyncInput& input, SyncProgram& program)
      : input_(input),
        builder_(program.traffic),
        root_lane_(program.traffic.folded.lane_of[input.placement.learners.front()]) {}

  OpId host(Seconds seconds, std::string_view name) {
    return builder_.add({.kind = OpKind::host,
                         .stream = Stream::host,
                         .phase = Phase::sync,
                         .cause = Cause::weight_sync,
                         .rank = root_lane_,
                         .name = builder_.graph().name(name),
                         .seconds = seconds});
  }

  void gather(double bytes) { collective(gather_traffic, bytes, Stream::gather, "gather"); }
  void broadcast(double bytes) {
    collective(broadcast_traffic, bytes, Stream::reduce, "broadcast");
  }

  // Each tensor is on its way alone: the root waits for the broadcast before the next one.
  void tensor(double bytes) {
    const Grpo& grpo = input_.grpo;
    const EngineStack::Sync& costs = input_.stack.sync;
    const bool gathers = input_.sharded(), local = grpo.layout == GrpoLayout::colocated;
    if (gathers && (local || !grpo.gather_whole_model)) gather(bytes);
    double seconds = costs.send.value.value + (gathers && !local ? costs.gather.value.value : 0);
    if (grpo.protocol == SyncProtocol::v1) seconds += call();
    if (grpo.per_tensor_overhead) seconds = grpo.per_tensor_overhead->value;
    host({seconds}, "tensor");
    if (!local) broadcast(bytes);
  }

  // Tensors are packed until the bucket is full, then all of them go together.
  void pack(double bytes) {
    packed_ += bytes;
    ++packed_tensors_;
    if (packed_ >= bucket_bytes(input_)) send_bucket();
  }
  void send_bucket() {
    if (packed_tensors_ == 0) return;
    const Grpo& grpo = input_.grpo;
    const EngineStack::Sync& costs = input_.stack.sync;
    const bool local = grpo.layout == GrpoLayout::colocated;
    if (input_.sharded()) gather(packed_);
    const double each =
        grpo.per_tensor_overhead ? grpo.per_tensor_overhead->value : costs.load.number();
    host({packed_tensors_ * each + (local ? costs.handle.number() : call())}, "bucket");
    if (!local) broadcast(packed_);
    packed_ = packed_tensors_ = 0;
  }

  // To every engine.
  double call() const {
    const EngineStack::Sync& costs = input_.stack.sync;
    const double engines = static_cast<double>(input_.placement.engines.size());
    return costs.call.value.value + engines * costs.engine.value.value;
  }

  void out(std::size_t plan, double bytes, std::string_view name) {
    if (bytes > 0) move(OpKind::transfer, plan, bytes, Stream::d2h, name);
  }
  void in(std::size_t plan, double bytes, std::string_view name) {
    if (bytes > 0) move(OpKind::transfer, plan + 1, bytes, Stream::h2d, name);
  }

  // Half of what a turn costs whatever its size, and what is mapped or given back.
  void nap(std::string_view name) {
    const EngineStack::Sleep& costs = input_.stack.sleep;
    host({costs.fixed.number() / 2 + input_.turn.mapped / costs.map.number()}, name);
  }

  OpGraph take() { return builder_.take(); }

 private:
  void collective(std::size_t plan, double bytes, Stream stream, std::string_view name) {
    move(OpKind::collective, plan, bytes, stream, name);
  }
  void move(OpKind kind, std::size_t plan, double bytes, Stream stream, std::string_view name) {
    Op op{.kind = kind,
          .stream = stream,
          .phase = Phase::sync,
          .cause = Cause::weight_sync,
          .name = builder_.graph().name(name)};
    op.bytes = {bytes};
    builder_.collective(plan, op, Stream::host);
    builder_.wait(Stream::host, stream);
  }

  const SyncInput& input_;
  ProgramBuilder builder_;
  Rank root_lane_;
  double packed_ = 0, packed_tensors_ = 0;  // bytes and tensors in the bucket
};

}  // namespace

CollectivePlan broadcast_plan(const SyncInput& input) {
  const Group group = receivers(input);
  if (group.size() > 1 && input.grpo.backend == SyncBackend::gloo) return gloo_plan(input, group);
  if (group.size() > 1 && input.grpo.broadcast == BroadcastShape::flat)
    return plan_of(input, group, flat(group), "broadcast flat");
  return plan_collective(input.cluster, Collective::broadcast, {group});
}

double bucket_bytes(const SyncInput& input) {
  return input.grpo.sync_bucket ? input.grpo.sync_bucket->value : input.stack.sync.bucket.number();
}

std::int64_t tensors_of(const Model& model) {
  return count_parameters(model).tensors;
}

SyncProgram build_return(const SyncInput& input, double bytes) {
  SyncProgram program;
  const Group& learners = input.placement.learners;
  std::vector<CollectivePlan> plans;
  add_copies(input, input.grpo.park_memory, plans);
  program.traffic = make_traffic(machinery_of(input.cluster), std::move(plans), Folding::automatic);
  program.root = program.traffic.folded.lane_of[learners.front()];
  SyncWriter writer(input, program);
  constexpr std::size_t only_traffic = 0;
  if (input.grpo.swap_reference) writer.out(only_traffic, bytes, "park");
  writer.in(only_traffic, bytes, "bring back");
  if (input.grpo.swap_reference) writer.in(only_traffic, bytes, "bring back");
  program.graph = writer.take();
  return program;
}

SyncProgram build_sync(const SyncInput& input, std::int64_t layers) {
  SyncProgram program;
  const Group& learners = input.placement.learners;
  const Group& holders = input.sharded() ? input.holders : Group{learners.front()};
  const bool colocated = input.grpo.layout == GrpoLayout::colocated;
  const TurnBytes& turn = input.turn;
  std::vector<CollectivePlan> plans{
      plan_collective(input.cluster, Collective::all_gather, {holders}), broadcast_plan(input)};
  if (colocated) {
    add_copies(input, ParkMemory::pinned, plans);
    add_copies(input, input.grpo.park_memory, plans);
  }
  program.traffic = make_traffic(machinery_of(input.cluster), std::move(plans), Folding::automatic);
  program.root = program.traffic.folded.lane_of[learners.front()];
  SyncWriter writer(input, program);
  const bool buckets = input.grpo.protocol == SyncProtocol::buckets;
  if (input.sharded() && input.grpo.gather_whole_model && !colocated && !buckets)
    writer.gather(bytes_16 * static_cast<double>(count_parameters(input.model).total()));
  program.gathered = writer.host({0}, "gathered");
  if (colocated) {
    writer.out(states_traffic, turn.states, "park");
    writer.nap(wake_name);
    writer.in(pinned_traffic, turn.weights, wake_name);
  }
  const bool one_call = input.grpo.protocol != SyncProtocol::v1 && !buckets;
  if (one_call) writer.host({writer.call()}, "call");
  const auto send = [&](const std::vector<Module>& modules) {
    for (const double bytes : sizes_of(modules))
      if (buckets)
        writer.pack(bytes);
      else
        writer.tensor(bytes);
  };
  send(outer_modules(input.model));
  for (std::int64_t layer = 0; layer < layers; ++layer) send(layer_modules(input.model, layer));
  writer.send_bucket();
  if (colocated) {
    writer.out(pinned_traffic, turn.parameters, "park");
    writer.out(pinned_traffic, turn.weights, sleep_name);  // when all is generated
    writer.nap(sleep_name);
    writer.in(pinned_traffic, turn.parameters, "bring back");
    writer.in(states_traffic, turn.states, "bring back");
  }
  program.graph = writer.take();
  return program;
}

}  // namespace stepsim
