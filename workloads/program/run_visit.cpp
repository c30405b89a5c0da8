#include "workloads/program/run_visit.hpp"

#include <algorithm>

#include "workloads/layers/checkpointing.hpp"
#include "workloads/layers/routing.hpp"
#include "workloads/program/run_shared.hpp"

namespace stepsim {
namespace {

Cause cause_of(Phase phase) {
  return phase == Phase::recompute ? Cause::recompute : Cause::compute;
}

const std::vector<KernelRow>& rows_of(const Visit& visit) {
  const Unit& unit = *visit.unit;
  if (visit.phase == Phase::backward) return unit.backward;
  return visit.phase == Phase::recompute ? unit.again : unit.forward;
}

// A token's row travels once to each node, and there once to each rank, that has one of its
// experts; rows go on inside a node while others still come from elsewhere.
void exchange_once(StepWriter& writer, const Unit& unit) {
  const Mesh& mesh = writer.mesh();
  const Experts& e = *writer.input().model.experts;
  const auto rows_to = [&](Rank parts) {
    return unit.once * parts_met(e.count, e.per_token, static_cast<double>(parts),
                                 chosen_groups(e, writer.input().strategy.experts));
  };
  const Mark ready = writer.to_hand_on();
  const auto send = [&](Plan plan, double bytes, Stream stream, std::string_view name) {
    writer.hand_after(
        writer.collective(plan, {bytes}, stream, Cause::moe_all_to_all, name, {ready}));
  };
  if (mesh.expert_nodes > 1)
    send(Plan::rail_exchange, rows_to(mesh.expert_nodes), Stream::all_to_all, "send_to_nodes");
  if (mesh.experts > mesh.expert_nodes)
    send(Plan::node_exchange, rows_to(mesh.experts), Stream::tensor, "send_to_ranks");
}

// Each tensor that an operator saves is taken away, and found again when the layer runs again. A
// policy of operators works by the same hooks, under a dispatch mode that nobody has measured here.
Seconds saved_hooks(const StepInput& input, const Visit& visit) {
  const Unit& unit = *visit.unit;
  const bool hooked = input.strategy.checkpointing == Checkpointing::full && unit.called_again &&
                      visit.phase != Phase::backward && !visit.frozen &&
                      stops_early(input.stack, input.strategy);
  if (!hooked) return Seconds{0};
  const std::vector<KernelRow>& rows = rows_of(visit);
  return static_cast<double>(unit.rounds) * operators_of(rows, input.stack.operators) *
         input.stack.host.saved_hook.value;
}

void run_part(StepWriter& writer, const Visit& visit, PartOfVisit part) {
  const Cause cause = cause_of(visit.phase);
  if (part == PartOfVisit::all || !visit.unit->parts)
    run_kernels(writer, *visit.unit, rows_of(visit), visit.phase, cause, true);
  else if (part == PartOfVisit::inputs)
    run_inputs(writer, *visit.unit, cause);
  else
    run_weights(writer, *visit.unit, cause);
}

// Runs round by round; before each the host may have to know what the router decided.
Mark run_unit(StepWriter& writer, const Visit& visit, PartOfVisit part) {
  const Unit& unit = *visit.unit;
  const bool backward = visit.phase == Phase::backward;
  const Seconds sync = writer.input().stack.host.sync.value;
  if (unit.stops.agrees && !backward) {
    const Mark agreed = writer.collective(Plan::signal, {8}, Stream::all_to_all,
                                          Cause::routing_sync, "agree", {writer.last_compute()});
    writer.host(sync, Cause::routing_sync, "agreed", {agreed});
  }
  const Seconds dispatcher = dispatcher_calls(writer.input(), unit);
  writer.spend(dispatcher / 2);
  if (unit.stops.told > 0 && !backward) {
    const Mark told = writer.collective(Plan::exchange, {unit.stops.told}, Stream::all_to_all,
                                        Cause::routing_sync, "counts", {writer.last_compute()});
    writer.host(sync, Cause::routing_sync, "told", {told});
  }
  writer.spend(dispatcher / 2);
  writer.spend(module_calls(writer.input(), visit));
  arrive(writer, unit, visit.phase);
  for (std::int64_t round = 0; round < unit.rounds; ++round) {
    if (unit.stops.reads > 0 && !backward)
      writer.drain(unit.stops.reads * sync, unit.in_moe ? Cause::routing_sync : Cause::launch,
                   unit.in_moe ? "routing" : "read_lengths");
    run_part(writer, visit, part);
  }
  leave(writer, unit, visit.phase);
  return writer.last_compute();
}

}  // namespace

// Writes the all-to-all before a unit; its gradient goes the other way after the unit's backward.
void send_tokens(StepWriter& writer, const Unit& unit) {
  if (sends_once(writer.input().strategy.experts.dispatcher)) {
    exchange_once(writer, unit);
    return;
  }
  const Mark done = writer.collective(Plan::exchange, {unit.exchange}, Stream::all_to_all,
                                      Cause::moe_all_to_all, "all_to_all", {writer.to_hand_on()});
  writer.hand_after(done);
}

Seconds module_calls(const StepInput& input, const Visit& visit) {
  const Unit& unit = *visit.unit;
  const bool backward = visit.phase == Phase::backward;
  const double core = input.cluster.node.host.core_speed.value.value;
  Seconds each = input.stack.host.module_call.value;
  if (unit.narrow > 0) {
    const Precision& precision = input.strategy.precision;
    const bool narrow = is_narrow(unit, visit.phase);
    each = std::max(each, (narrow ? precision.module_call : precision.module_call_wide).value);
  }
  const Stack::HostCosts& host = input.stack.host;
  const Seconds singly =
      unit.pieces * host.expert_product.value + unit.looped * host.plain_launch.value;
  const double plainly = input.strategy.compiled ? 0 : 1;  // else Python is gone
  const Seconds wrapped = unit.adapted * host.adapter_call.value +
                          unit.unpacked * host.unpack_call.value +
                          (backward ? 0 : unit.padded) * host.padded_column.value;
  return (static_cast<double>(unit.owners) * each + (backward ? 2 : 1) * singly +
          plainly * wrapped + saved_hooks(input, visit)) /
         core;
}

Seconds dispatcher_calls(const StepInput& input, const Unit& unit) {
  const ExpertStrategy& experts = input.strategy.experts;
  if (!unit.routes || experts.graphs) return Seconds{0};
  const auto& host = input.stack.host;
  const Seconds call =
      (sends_once(experts.dispatcher) ? host.expert_kernels : host.expert_call).value;
  return call / input.cluster.node.host.core_speed.number();
}

bool sends_before(const Visit& visit) {
  if (visit.phase == Phase::backward || visit.unit->exchange <= 0) return false;
  return visit.phase == Phase::forward || visit.unit->sends_again;
}

bool sends_behind(const Visit& visit) {
  return visit.phase == Phase::backward && visit.unit->exchange > 0;
}

bool waits_for_weights(const Visit& visit) {
  return visit.phase == Phase::backward && visit.unit->parts;
}

Mark run_between(StepWriter& writer, const Visit& visit, PartOfVisit part) {
  if (part != PartOfVisit::weights) return run_unit(writer, visit, part);
  for (std::int64_t round = 0; round < visit.unit->rounds; ++round) run_part(writer, visit, part);
  return writer.last_compute();
}

Mark run_visit(StepWriter& writer, const Visit& visit, PartOfVisit part) {
  if (part == PartOfVisit::weights) return run_between(writer, visit, part);
  if (sends_before(visit)) send_tokens(writer, *visit.unit);
  const Mark compute = run_unit(writer, visit, part);
  if (sends_behind(visit)) send_tokens(writer, *visit.unit);
  return compute;
}

// Ranks that ran a norm on tokens of their own have a part of its gradient each, and of the sides
// of adapters that are whole on each of them.
void sum_norms(StepWriter& writer, const std::vector<Visit>& visits) {
  const TensorParallel& tensor = writer.input().strategy.tensor_parallel;
  double elements = 0;
  for (const Visit& visit : visits) {
    if (visit.phase != Phase::backward) continue;
    if (tensor.sequence && visit.unit->kind == TensorClass::norm)
      elements += visit.unit->trained_elements();
    elements += visit.unit->common;
  }
  if (tensor.size == 1 || elements <= 0) return;
  writer.compute_after(writer.collective(Plan::tensor_sum, {writer.number_bytes() * elements},
                                         Stream::tensor, Cause::tensor_parallel,
                                         "sum_norm_gradients", {writer.last_compute()}));
}

}  // namespace stepsim
