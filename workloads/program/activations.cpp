#include "workloads/program/activations.hpp"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

// Copies to the host that may be under way before the next layer waits for the oldest: torchtune
// and TRL stash five.
constexpr std::int16_t stash = 5;

bool same_pass(const Visit& a, const Visit& b) {
  const auto backward = [](const Visit& v) { return v.phase != Phase::forward; };
  return a.layer == b.layer && backward(a) == backward(b) && a.frozen == b.frozen;
}

}  // namespace

Activations::Activations(StepWriter& writer, const std::vector<Visit>& visits)
    : writer_(writer), visits_(visits) {
  for (const Visit& visit : visits)
    if (travels(visit) && visit.phase == Phase::forward) {
      waiting_[visit.layer].inputs += visit.unit->memory.input;
      waiting_[visit.layer].kept += visit.unit->memory.kept;
    }
}

// Returns whether the activations go to the host: what stands outside the layers is needed at once,
// or is nothing.
bool Activations::travels(const Visit& visit) const {
  return writer_.input().strategy.activation_place == Offload::cpu && !visit.frozen &&
         visit.layer >= 0 &&
         visit.layer < static_cast<std::int64_t>(writer_.rank().units.layers.size());
}

bool Activations::first_of_layer(std::size_t visit) const {
  return visit == 0 || !same_pass(visits_[visit - 1], visits_[visit]);
}

bool Activations::last_of_layer(std::size_t visit) const {
  return visit + 1 == visits_.size() || !same_pass(visits_[visit], visits_[visit + 1]);
}

void Activations::send(std::int16_t layer, Mark compute) {
  Waiting& held = waiting_[layer];
  const double bytes = held.inputs + held.kept;
  if (bytes <= 0) return;
  held.back.reset();
  held.away = writer_.traffic(Plan::to_host, {bytes}, Cause::offload_transfer,
                              "activations_to_host", {compute});
  writer_.allocate(*held.away, Held::activations, bytes, Pool::pinned);
  writer_.release(*held.away, Held::checkpoints, held.inputs);
  writer_.release(*held.away, Held::activations, held.kept);
}

// Fetches a layer's activations, but not before the device has done what was issued so far, so that
// two layers are there at once.
void Activations::fetch(std::int16_t layer) {
  const auto found = waiting_.find(layer);
  if (found == waiting_.end() || !found->second.away || found->second.back) return;
  Waiting& held = found->second;
  const double bytes = held.inputs + held.kept;
  held.back = writer_.traffic(Plan::to_device, {bytes}, Cause::offload_transfer,
                              "activations_to_device", {writer_.last_compute(), *held.away});
  writer_.allocate(*held.back, Held::checkpoints, held.inputs);
  writer_.allocate(*held.back, Held::activations, held.kept);
  writer_.release(*held.back, Held::activations, bytes, Pool::pinned);
}

void Activations::before(std::size_t visit) {
  const Visit& now = visits_[visit];
  if (!travels(now) || !first_of_layer(visit)) return;
  if (now.phase == Phase::forward) {
    const auto oldest = waiting_.find(static_cast<std::int16_t>(now.layer - stash));
    if (oldest != waiting_.end() && oldest->second.away)
      writer_.compute_after(*oldest->second.away);
    return;
  }
  fetch(now.layer);
  if (const auto& back = waiting_[now.layer].back) writer_.compute_after(*back);
  fetch(static_cast<std::int16_t>(now.layer - 1));
}

// Returns what a unit of a reference has while it runs, which keeps nothing for a backward pass.
static double passing_of_frozen(const Unit::Memory& memory) {
  return memory.passing > 0 ? memory.passing : std::max(memory.forward, memory.saved);
}

// Keeps account of what a unit holds. What it keeps lives from its forward pass on, what it needs
// beyond that from its recomputation on; both go with its backward pass, or wait with the gradient
// of its result for the weights. A result that was kept for the recomputation alone goes there.
void Activations::ran(std::size_t visit, Mark compute, PartOfVisit part) {
  const Visit& now = visits_[visit];
  const Unit& unit = *now.unit;
  if (part == PartOfVisit::weights) {
    writer_.release(compute, Held::activations, unit.lingers ? 0 : unit.memory.saved);
    writer_.release(compute, Held::activation_gradients, unit.parts->gradient);
    return;
  }
  // A reference model keeps nothing; what a unit makes is gone with the next.
  const double passing = now.phase == Phase::backward ? unit.memory.backward
                         : now.frozen                 ? passing_of_frozen(unit.memory)
                                                      : unit.memory.forward;
  const double piece = unit.memory.piece > 0 ? unit.memory.piece : passing;
  const auto pieces = passing > 0 ? static_cast<std::int64_t>(std::ceil(passing / piece)) : 0;
  const auto bytes = [&](std::int64_t i) {
    return std::min(piece, passing - static_cast<double>(i) * piece);
  };
  for (std::int64_t i = 0; i < pieces; ++i) writer_.allocate(compute, Held::temporary, bytes(i));
  for (std::int64_t i = 0; i < pieces; ++i) writer_.release(compute, Held::temporary, bytes(i));
  if (now.frozen) return;
  switch (now.phase) {
    case Phase::forward:
      writer_.allocate(compute, Held::checkpoints, unit.memory.input);
      writer_.allocate(compute, Held::activations, unit.memory.kept);
      break;
    case Phase::recompute:
      writer_.allocate(compute, Held::activations, unit.memory.saved - unit.memory.kept);
      writer_.release(compute, Held::activations, unit.memory.kept - unit.memory.saved);
      break;
    default:
      if (unit.lingers)
        lingers_ += unit.memory.saved;
      else if (part == PartOfVisit::all)
        writer_.release(compute, Held::activations, unit.memory.saved);
      if (part == PartOfVisit::inputs)
        writer_.allocate(compute, Held::activation_gradients, unit.parts->gradient);
      give_up_input(unit.memory.input, compute);
      pass_gradient(visit, compute);
      break;
  }
  if (now.phase == Phase::forward && travels(now) && last_of_layer(visit)) send(now.layer, compute);
}

// The input of a layer goes with the layer's backward pass, or stays beside its own gradient until
// the whole pass is over.
void Activations::give_up_input(double bytes, Mark compute) {
  const StepInput& input = writer_.input();
  const bool reentrant = input.strategy.reentrant.value_or(input.stack.reentrant);
  if (!holds_frozen_inputs(input.strategy, reentrant))
    return writer_.release(compute, Held::checkpoints, bytes);
  writer_.allocate(compute, Held::activation_gradients, bytes);
  held_inputs_ += bytes;
}

// The gradient of a unit's inputs lives until the unit before it has run. That of the residual
// stream, one input wide, goes all the way, and takes up what comes out of a layer. So does that of
// a matrix which head and embedding share, until the embedding adds its part.
void Activations::pass_gradient(std::size_t visit, Mark compute) {
  const Visit& now = visits_[visit];
  if (now.unit->trained)
    for (const double elements : now.unit->borrowed) waits_ += writer_.number_bytes() * elements;
  if (!now.unit->borrowed.empty()) writer_.allocate(compute, Held::gradients, waits_);
  if (residual_ == 0 && now.unit->role != Role::loss) {
    residual_ = writer_.number_bytes() * writer_.input().job.slots() *
                static_cast<double>(writer_.input().model.hidden);
    writer_.allocate(compute, Held::activation_gradients, residual_);
  }
  writer_.allocate(compute, Held::activation_gradients, now.unit->memory.gradient);
  writer_.release(compute, Held::activation_gradients, passed_);
  passed_ = now.unit->memory.gradient;
  if (!last_of_layer(visit)) return;
  writer_.release(compute, Held::activation_gradients, passed_);
  passed_ = 0;
  if (now.layer < 0) end_pass(compute);
}

void Activations::end_pass(Mark compute) {
  writer_.release(compute, Held::activation_gradients, residual_);
  writer_.release(compute, Held::gradients, waits_);
  writer_.release(compute, Held::activations, lingers_);
  writer_.release(compute, Held::checkpoints, held_inputs_);
  writer_.release(compute, Held::activation_gradients, held_inputs_);
  residual_ = waits_ = lingers_ = held_inputs_ = 0;
}

double activation_bytes(const StepInput& input, const std::vector<Visit>& visits) {
  std::map<std::int16_t, double> again;  // by layer: what its recomputation adds
  double inputs = 0, kept = 0, largest = 0;
  for (const Visit& visit : visits) {
    if (visit.phase != Phase::forward || visit.frozen) continue;
    inputs += visit.unit->memory.input;
    kept += visit.unit->lingers ? visit.unit->memory.saved : visit.unit->memory.kept;
    if (visit.unit->lingers) continue;
    again[visit.layer] += visit.unit->memory.saved - visit.unit->memory.kept;
  }
  for (const auto& [layer, bytes] : again) largest = std::max(largest, bytes);
  if (input.strategy.activation_place == Offload::none) return inputs + kept + largest;
  // Two layers' are there while one comes and one is used, or some have not left yet.
  const double layers = static_cast<double>(std::max<std::int64_t>(1, input.model.layers));
  return largest + (inputs + kept) * std::min(1.0, stash / layers);
}

}  // namespace stepsim
