#include "workloads/step.hpp"

#include <algorithm>
#include <map>

#include "workloads/sharding.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

// The units of a model, layer by layer; a Visit points into them.
struct ModelUnits {
  Unit embedding;
  std::vector<std::vector<Unit>> layers;
  std::vector<Unit> head;
};

ModelUnits units_of(const StepInput& input) {
  const Load outer = load_of(input.model, input.job, 0);
  ModelUnits units{embedding_unit(input.model, outer),
                   {},
                   head_units(input.model, input.stack, input.job, outer)};
  for (std::int64_t layer = 0; layer < input.model.layers; ++layer)
    units.layers.push_back(layer_units(input.model, input.stack, input.strategy,
                                       load_of(input.model, input.job, layer), layer));
  return units;
}

struct VisitList {
  std::vector<Visit> visits;
  std::map<const Unit*, std::uint32_t> first_instance;
  std::uint32_t instances = 0;

  void call(const Unit& unit, std::int16_t layer, Phase phase, bool reversed, bool frozen = false) {
    const auto [place, added] = first_instance.try_emplace(&unit, instances);
    const auto times = static_cast<std::uint32_t>(unit.times);
    if (added) instances += times;
    for (std::uint32_t i = 0; i < times; ++i)
      visits.push_back(
          {&unit, place->second + (reversed ? times - 1 - i : i), layer, phase, frozen});
  }
};

void call_forward(VisitList& list, const ModelUnits& units, bool frozen) {
  const auto layers = static_cast<std::int16_t>(units.layers.size());
  list.call(units.embedding, -1, Phase::forward, false, frozen);
  for (std::int16_t layer = 0; layer < layers; ++layer)
    for (const Unit& unit : units.layers[static_cast<std::size_t>(layer)])
      list.call(unit, layer, Phase::forward, false, frozen);
  for (const Unit& unit : units.head) list.call(unit, layers, Phase::forward, false, frozen);
}

// The policy runs forward, a reference model after it, then backward layer by layer.
std::vector<Visit> visits_of(const ModelUnits& units, const ModelUnits* reference, bool recompute) {
  VisitList list;
  const auto layer_count = static_cast<std::int16_t>(units.layers.size());
  call_forward(list, units, false);
  if (reference != nullptr) call_forward(list, *reference, true);
  for (std::size_t i = units.head.size(); i-- > 0;)
    list.call(units.head[i], layer_count, Phase::backward, true);
  for (std::int16_t layer = layer_count; layer-- > 0;) {
    const std::vector<Unit>& inside = units.layers[static_cast<std::size_t>(layer)];
    if (recompute)
      for (const Unit& unit : inside) list.call(unit, layer, Phase::recompute, false);
    for (std::size_t i = inside.size(); i-- > 0;)
      list.call(inside[i], layer, Phase::backward, true);
  }
  list.call(units.embedding, -1, Phase::backward, true);
  return std::move(list.visits);
}

Cause cause_of(Phase phase) {
  return phase == Phase::recompute ? Cause::recompute : Cause::compute;
}

// Activations: what a unit saves lives from its forward (or recomputation) to its backward; with
// checkpointing a layer's input lives from its forward to its backward instead.
class Activations {
 public:
  Activations(StepWriter& writer, bool checkpointed)
      : writer_(writer), checkpointed_(checkpointed) {}

  void ran(const Visit& visit, Mark compute, bool first_of_layer, bool last_of_layer) {
    if (visit.frozen) return;
    const bool in_layer = visit.unit->name != "embed_tokens" && visit.layer >= 0;
    const double slots = writer_.input().job.slots();
    const double input = half * slots * static_cast<double>(writer_.input().model.hidden);
    const bool kept = !checkpointed_ || visit.phase == Phase::recompute ||
                      visit.layer == writer_.input().model.layers;
    if (visit.phase == Phase::backward) {
      writer_.release(compute, "activations", visit.unit->saved_bytes);
      if (checkpointed_ && in_layer && last_of_layer && visit.layer < writer_.input().model.layers)
        writer_.release(compute, "checkpoints", input);
      return;
    }
    if (kept) writer_.allocate(compute, "activations", visit.unit->saved_bytes);
    if (checkpointed_ && visit.phase == Phase::forward && first_of_layer && in_layer &&
        visit.layer < writer_.input().model.layers)
      writer_.allocate(compute, "checkpoints", input);
  }

 private:
  StepWriter& writer_;
  bool checkpointed_;
};

// The all-to-all before a unit; its gradient goes the other way after the unit's backward.
void exchange(StepWriter& writer, const Unit& unit) {
  if (unit.exchange <= 0) return;
  const Mark done = writer.collective(World::exchange, {unit.exchange}, Stream::all_to_all,
                                      Cause::moe_all_to_all, "all_to_all", {writer.last_compute()});
  writer.compute_after(done);
}

template <class Schedule>
void write_step(StepWriter& writer, const std::vector<Visit>& visits) {
  const StepInput& input = writer.input();
  Schedule schedule(writer, visits);
  Activations activations(writer, input.strategy.checkpointing == Checkpointing::full);
  const double core = input.cluster.node.host.core_speed.value.value;
  writer.context = {Phase::other, -1, 0};
  writer.host(input.stack.host.step.value / core, Cause::other, "step_overhead");
  for (std::int64_t micro = 0; micro < input.job.accumulation; ++micro) {
    const bool last = micro + 1 == input.job.accumulation;
    for (std::size_t i = 0; i < visits.size(); ++i) {
      const Visit& visit = visits[i];
      const bool backward = visit.phase == Phase::backward;
      const bool first_of_layer =
          i == 0 || visits[i - 1].layer != visit.layer || visits[i - 1].phase != visit.phase;
      const bool last_of_layer = i + 1 == visits.size() || visits[i + 1].layer != visit.layer ||
                                 visits[i + 1].phase != visit.phase;
      writer.context = {visit.phase, visit.layer, static_cast<std::int16_t>(micro)};
      schedule.before(i);
      if (visit.unit->syncs > 0 && !backward)
        writer.drain(visit.unit->syncs * input.stack.host.sync.value, Cause::routing_sync,
                     "routing");
      if (!backward) exchange(writer, *visit.unit);
      const Mark compute = writer.run(backward ? visit.unit->backward : visit.unit->forward,
                                      backward, cause_of(visit.phase), visit.unit->name);
      if (backward) exchange(writer, *visit.unit);
      activations.ran(visit, compute, first_of_layer, last_of_layer);
      schedule.after(i, last);
    }
    schedule.finish_backward(last);
  }
  schedule.step();
}

struct Held {
  double parameters = 0;  // elements of a rank's share of the model before sharding
  double sharded = 0;     // elements of the optimizer's shard
};

// Experts are shared out among expert-parallel ranks first; what a rank then holds is sharded over
// those that hold the same.
Held held_by(const StepInput& input) {
  const ParameterCount count = count_parameters(input.model);
  const double experts = static_cast<double>(count.of(TensorClass::expert));
  const double all = static_cast<double>(count.total());
  const double ep = input.strategy.moe_kernel == MoeKernel::tutel
                        ? static_cast<double>(input.strategy.expert_parallel)
                        : 1;
  return {all - experts + experts / ep, all / static_cast<double>(input.cluster.ranks())};
}

// Elements of tensors that stage 3 does not partition between modules.
double persistent(const StepInput& input) {
  const ModelUnits units = units_of(input);
  double sum = 0;
  const auto add = [&](const Unit& unit) {
    for (const double elements : unit.tensors)
      if (elements <= input.strategy.zero.persistence_threshold)
        sum += elements * static_cast<double>(unit.times);
  };
  add(units.embedding);
  for (const std::vector<Unit>& layer : units.layers)
    for (const Unit& unit : layer) add(unit);
  for (const Unit& unit : units.head) add(unit);
  return sum;
}

}  // namespace

double resident_bytes(const StepInput& input) {
  const Held held = held_by(input);
  const Strategy& s = input.strategy;
  const bool on_device = s.optimizer_place == Offload::none;
  const double state =
      on_device ? optimizer_state_bytes(s.optimizer) + (s.master_weights ? 4 : 0) : 0;
  const bool reference = input.job.method == Method::dpo && input.job.reference_model;
  const double copies = reference ? 2 : 1;  // of the 16-bit parameters
  switch (s.sharding) {
    case Sharding::zero0:
      return held.parameters * (copies * half + half + state);
    case Sharding::zero1:
      return held.parameters * (copies * half + half) + held.sharded * state;
    case Sharding::zero2:
      return held.parameters * copies * half + held.sharded * ((on_device ? half : 0) + state);
    case Sharding::zero3:
    case Sharding::fsdp: {
      const double parameters = s.parameter_place == Offload::none ? copies * half : 0;
      // Stage 3 has its bucket for the whole run, and its small tensors stay gathered.
      const double kept = s.sharding == Sharding::zero3
                              ? half * s.zero.reduce_bucket + copies * half * persistent(input)
                              : 0;
      return kept + held.sharded * (parameters + (on_device ? half : 0) + state);
    }
  }
  return 0;
}

// With checkpointing one layer's and the head's, and every layer's input.
double activation_bytes(const StepInput& input, const std::vector<Visit>& visits) {
  std::map<std::int16_t, double> saved;  // by layer
  for (const Visit& visit : visits)
    if (visit.phase == Phase::forward && !visit.frozen)
      saved[visit.layer] += visit.unit->saved_bytes;
  const auto layers = static_cast<std::int16_t>(input.model.layers);
  const bool checkpointed = input.strategy.checkpointing == Checkpointing::full;
  double largest = 0, all = 0;
  for (const auto& [layer, bytes] : saved) {
    all += bytes;
    if (layer < layers) largest = std::max(largest, bytes);
  }
  if (!checkpointed) return all;
  const double inputs = half * input.job.slots() * static_cast<double>(input.model.hidden) * layers;
  return inputs + largest + saved[layers];
}

StepProgram build_step(const StepInput& input, Folding folding) {
  StepProgram program;
  program.traffic = make_traffic(machinery_of(input.cluster), step_plans(input), folding);
  StepWriter writer(input, program.traffic);
  const ModelUnits units = units_of(input);
  const bool with_reference = input.job.method == Method::dpo && input.job.reference_model;
  const ModelUnits reference = with_reference ? units : ModelUnits{};
  const std::vector<Visit> visits = visits_of(units, with_reference ? &reference : nullptr,
                                              input.strategy.checkpointing == Checkpointing::full);
  switch (input.strategy.sharding) {
    case Sharding::zero3:
      write_step<Zero3>(writer, visits);
      break;
    case Sharding::fsdp:
      write_step<FullyShardedGroups>(writer, visits);
      break;
    default:
      write_step<Replicated>(writer, visits);
      break;
  }
  program.graph = writer.take();
  const double micro = static_cast<double>(input.job.accumulation);
  for (const Visit& visit : visits)
    if (visit.phase != Phase::recompute && !visit.frozen)
      program.flops += micro * flops_of(visit.phase == Phase::backward ? visit.unit->backward
                                                                       : visit.unit->forward);
  program.tokens =
      static_cast<double>(input.cluster.ranks()) * input.job.slots() * micro * input.job.fill;
  program.resident = resident_bytes(input);
  return program;
}

}  // namespace stepsim
