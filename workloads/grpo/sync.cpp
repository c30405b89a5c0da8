#include "workloads/grpo/sync.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "workloads/collectives/plan.hpp"

namespace stepsim {
namespace {

Group receivers(const SyncInput& input) {
  // Everybody gets from host memory what all others have.
  if (input.grpo.protocol == SyncProtocol::host_buckets) {
    Group all = input.placement.learners;
    if (input.grpo.layout == GrpoLayout::separate)
      for (const Group& engine : input.placement.engines)
        all.insert(all.end(), engine.begin(), engine.end());
    return all;
  }
  Group group{input.placement.learners.front()};
  if (input.grpo.layout == GrpoLayout::colocated) return group;  // the weights are there already
  for (const Group& engine : input.placement.engines)
    group.insert(group.end(), engine.begin(), engine.end());
  return group;
}

// A candidate of a schedule that no library's table lists.
CollectivePlan plan_of(const SyncInput& input, const Group& group, Schedule schedule,
                       std::string_view name) {
  if (spans_nodes(input.cluster, group))
    for (ScheduleRound& round : schedule) std::swap(round.steps.node, round.steps.network);
  CollectivePlan plan{Collective::broadcast, {group}, {}};
  Candidate candidate{std::string(name), "simple", {}, {}};
  candidate.patterns.push_back(make_pattern(input.cluster, schedule, group, name, "simple"));
  candidate.cost = cost_of(input.cluster, candidate.patterns);
  plan.candidates.push_back(std::move(candidate));
  return plan;
}

ScheduleRound round_of(std::vector<Leg> legs) {
  return {{1, 0, 0}, std::move(legs)};
}

// The root sends a copy to each, all at once.
Schedule flat(const Group& group) {
  std::vector<Leg> legs;
  for (std::size_t i = 1; i < group.size(); ++i)
    legs.push_back({.source = group.front(), .target = group[i], .share = 1});
  return {round_of(std::move(legs))};
}

// Sends as Gloo does: whoever has it sends the whole of it on, to twice as many in every round.
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

// Adds the sizes of the tensors that travel. Matrices of layers in 8 bits have a tensor of scales
// beside them, one for each block of so many numbers.
void add_sizes(const std::vector<Module>& modules, std::int64_t narrow_from,
               std::vector<double>& bytes) {
  constexpr double block = 128 * 128, scale = 4;
  for (const Module& module : modules)
    for (const Tensor& tensor : module.tensors) {
      const double numbers = static_cast<double>(tensor.elements);
      const bool narrow = tensor.elements >= narrow_from;
      bytes.push_back(narrow ? numbers : bytes_16 * numbers);
      if (narrow) bytes.push_back(scale * std::ceil(numbers / block));
    }
}

// Returns the sizes of embedding and head first, then of the layers.
std::vector<double> sizes_of(const SyncInput& input, std::span<const std::int64_t> layers) {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max(), rows = 16;
  const bool narrow = input.grpo.sent == EngineBits::fp8;
  std::vector<double> bytes;
  if (input.grpo.send_adapters) {
    for (const std::int64_t layer : layers) {
      const std::vector<double>& sizes = input.adapters[static_cast<std::size_t>(layer)];
      bytes.insert(bytes.end(), sizes.begin(), sizes.end());
    }
    return bytes;
  }
  add_sizes(outer_modules(input.model), never, bytes);
  for (const std::int64_t layer : layers)
    add_sizes(layer_modules(input.model, layer), narrow ? rows * input.model.hidden : never, bytes);
  return bytes;
}

// Returns whether weights travel through host memory.
bool copies_to_host(const Grpo& grpo) {
  return grpo.protocol == SyncProtocol::host_buckets || grpo.protocol == SyncProtocol::files;
}

// Copies: each out, and in behind that.
constexpr std::size_t gather_traffic = 0, broadcast_traffic = 1, pinned_traffic = 2,
                      states_traffic = 4, root_traffic = 6;

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

void add_copies(const SyncInput& input, ParkMemory memory, std::span<const Rank> ranks,
                std::vector<CollectivePlan>& plans) {
  for (const Copy direction : {Copy::d2h, Copy::h2d}) {
    CollectivePlan plan = plan_copy(input.cluster, direction, ranks);
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
    collective(broadcast_traffic, bytes, Stream::reduce, sent_names[1]);
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
    const double each = grpo.per_tensor_overhead ? grpo.per_tensor_overhead->value
                                                 : costs.convert.number() + costs.load.number();
    host({packed_tensors_ * each + (local ? costs.handle.number() : call())}, "bucket");
    if (!local) broadcast(packed_);
    packed_ = packed_tensors_ = 0;
  }

  // A bucket of each learner is copied up from host memory, all at once.
  void fill(double bytes) {
    move(OpKind::transfer, pinned_traffic + 1, bytes, Stream::h2d, sent_names[0]);
  }
  // Broadcast by the first learner as it would be by any other, into one of two places in every
  // engine, which loads it while the next one comes into the other.
  void hand_over(double bytes, double tensors) {
    const EngineStack::Sync& costs = input_.stack.sync;
    const auto send = [&](std::initializer_list<Mark> after) {
      return move(OpKind::collective, broadcast_traffic, bytes, Stream::reduce, sent_names[1],
                  after);
    };
    const Mark sent = loads_.size() < 2 ? send({}) : send({loads_[loads_.size() - 2]});
    const double each = input_.grpo.per_tensor_overhead ? input_.grpo.per_tensor_overhead->value
                                                        : costs.load.number();
    loads_.push_back(builder_.everywhere({.kind = OpKind::host,
                                          .stream = Stream::compute,
                                          .phase = Phase::sync,
                                          .cause = Cause::weight_sync,
                                          .name = builder_.graph().name("load"),
                                          .seconds = {costs.engine.number() + tensors * each}},
                                         {sent}));
  }
  void all_loaded() { builder_.wait(Stream::host, Stream::compute); }

  // Returns the seconds of a call to every engine.
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
  Mark move(OpKind kind, std::size_t plan, double bytes, Stream stream, std::string_view name,
            std::initializer_list<Mark> after = {}) {
    Op op{.kind = kind,
          .stream = stream,
          .phase = Phase::sync,
          .cause = Cause::weight_sync,
          .name = builder_.graph().name(name)};
    op.bytes = {bytes};
    const Mark mark = builder_.collective(plan, op, Stream::host, after);
    builder_.wait(Stream::host, stream);
    return mark;
  }

  const SyncInput& input_;
  ProgramBuilder builder_;
  Rank root_lane_;
  double packed_ = 0, packed_tensors_ = 0;  // bytes and tensors in the bucket
  std::vector<Mark> loads_;                 // of buckets, by all engines
};

double sum_of(std::span<const double> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

// Writes what comes before anything is sent, while engines still generate.
void prepare(const SyncInput& input, std::span<const double> sizes, SyncWriter& writer) {
  const Grpo& grpo = input.grpo;
  const bool colocated = grpo.layout == GrpoLayout::colocated;
  const double bytes = sum_of(sizes);
  if (grpo.protocol == SyncProtocol::host_buckets) {
    const double learners = static_cast<double>(input.placement.learners.size());
    writer.out(pinned_traffic, bytes / learners, "keep");
  } else if (grpo.protocol == SyncProtocol::files) {
    const EngineStack::Sync& costs = input.stack.sync;
    for (const double each : sizes) {
      if (input.sharded()) writer.gather(each);
      writer.out(root_traffic, each, "keep");
    }
    const double tensors = static_cast<double>(sizes.size());
    writer.host({tensors * costs.convert.number()}, "convert");
    writer.host({bytes / costs.write.number()}, written_name);
  } else if (input.sharded() && grpo.gather_whole_model &&
             (!colocated || input.stack.own_weights) && grpo.protocol != SyncProtocol::buckets) {
    writer.gather(grpo.send_adapters
                      ? bytes
                      : bytes_16 * static_cast<double>(count_parameters(input.model).total()));
  }
}

// Each learner has as much of the model in host memory as any other, in whole tensors.
void send_from_hosts(const SyncInput& input, std::span<const double> sizes, SyncWriter& writer) {
  const std::size_t learners = input.placement.learners.size();
  const double share = sum_of(sizes) / static_cast<double>(learners);
  const double most = std::min(bucket_bytes(input), share);
  struct Bucket {
    double bytes = 0, tensors = 0;
  };
  std::vector<Bucket> buckets(1);
  for (const double bytes : sizes) {
    if (buckets.back().bytes >= most) buckets.emplace_back();
    buckets.back().bytes += bytes;
    buckets.back().tensors += 1;
  }
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (i % learners == 0) writer.fill(buckets[i].bytes);
    writer.hand_over(buckets[i].bytes, buckets[i].tensors);
  }
  writer.all_loaded();
}

void send(const SyncInput& input, std::span<const double> sizes, SyncWriter& writer) {
  const EngineStack::Sync& costs = input.stack.sync;
  switch (input.grpo.protocol) {
    case SyncProtocol::buckets:
      for (const double bytes : sizes) writer.pack(bytes);
      return writer.send_bucket();
    case SyncProtocol::host_buckets:
      writer.host({writer.call() + costs.handle.number()}, "call");
      return send_from_hosts(input, sizes, writer);
    case SyncProtocol::files: {
      const double bytes = sum_of(sizes), tensors = static_cast<double>(sizes.size());
      writer.host({writer.call() + bytes / costs.read.number() + tensors * costs.load.number()},
                  "read");
      return;
    }
    case SyncProtocol::v2:
    case SyncProtocol::v3:
      writer.host({writer.call()}, "call");
      [[fallthrough]];
    case SyncProtocol::v1:
      for (const double bytes : sizes) writer.tensor(bytes);
  }
}

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
  add_copies(input, input.grpo.park_memory, learners, plans);
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

SyncProgram build_sync(const SyncInput& input, std::span<const std::int64_t> layers) {
  SyncProgram program;
  const Group& learners = input.placement.learners;
  const Group& holders = input.sharded() ? input.holders : Group{learners.front()};
  const bool colocated = input.grpo.layout == GrpoLayout::colocated;
  const TurnBytes& turn = input.turn;
  const bool sleeps = colocated && !input.grpo.stays_awake();
  std::vector<CollectivePlan> plans{
      plan_collective(input.cluster, Collective::all_gather, {holders}), broadcast_plan(input)};
  if (colocated || copies_to_host(input.grpo)) {
    add_copies(input, ParkMemory::pinned, learners, plans);
    add_copies(input, input.grpo.park_memory, learners, plans);
    add_copies(input, ParkMemory::pageable, std::span(learners).first(1), plans);
  }
  program.traffic = make_traffic(machinery_of(input.cluster), std::move(plans), Folding::automatic);
  program.root = program.traffic.folded.lane_of[learners.front()];
  SyncWriter writer(input, program);
  const std::vector<double> sizes = sizes_of(input, layers);
  prepare(input, sizes, writer);
  program.gathered = writer.host({0}, "gathered");
  if (input.stack.own_weights) {
    program.graph = writer.take();
    return program;
  }
  if (colocated) {
    writer.out(states_traffic, turn.states, "park");
    if (sleeps) writer.nap(wake_name);
    writer.in(pinned_traffic, turn.weights, wake_name);
  }
  send(input, sizes, writer);
  if (colocated) {
    writer.out(pinned_traffic, turn.parameters, "park");
    writer.out(pinned_traffic, turn.weights, sleep_name);  // when all is generated
    if (sleeps) writer.nap(sleep_name);
    writer.in(pinned_traffic, turn.parameters, "bring back");
    writer.in(states_traffic, turn.states, "bring back");
  }
  program.graph = writer.take();
  return program;
}

double wait_for_engines(SyncProtocol protocol, const SyncCost& cost,
                        std::span<const Engine> engines) {
  double slowest = 0, calls = 0;
  for (const Engine& engine : engines) {
    const double iteration = engine.iteration();
    slowest = std::max(slowest, iteration);
    if (cost.window.value > 0)
      calls = std::max(calls, engine.iterations_left() * iteration / cost.window.value);
  }
  if (protocol != SyncProtocol::v1) return cost.calls > 0 ? slowest : 0;
  return std::min(calls, cost.calls) * cost.busy.value;
}

double slowed_by(const SyncCost& cost, double sending) {
  const double working = cost.calls * cost.window.value;
  return working > 0 ? std::max(1.0, sending / working) : 0;
}

}  // namespace stepsim
