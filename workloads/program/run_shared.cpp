#include "workloads/program/run_shared.hpp"

#include <algorithm>

namespace stepsim {

Plan plan_of(Handover kind) {
  switch (kind) {
    case Handover::sum:
      return Plan::tensor_sum;
    case Handover::collect:
      return Plan::tensor_collect;
    case Handover::scatter:
      return Plan::tensor_scatter;
    case Handover::heads:
      return Plan::swap_heads;
    case Handover::expert_collect:
      return Plan::expert_collect;
    case Handover::expert_scatter:
      return Plan::expert_sum;
  }
  return Plan::tensor_sum;
}

GroupShape shape_of(Handover kind, const Mesh& mesh) {
  switch (kind) {
    case Handover::sum:
      return {Collective::all_reduce, mesh.tensor, 1};
    case Handover::collect:
      return {Collective::all_gather, mesh.tensor, 1};
    case Handover::scatter:
      return {Collective::reduce_scatter, mesh.tensor, 1};
    case Handover::heads:
      return {Collective::all_to_all, mesh.ulysses, mesh.apart()};
    case Handover::expert_collect:
      return {Collective::all_gather, mesh.expert_tensor, 1};
    case Handover::expert_scatter:
      return {Collective::reduce_scatter, mesh.expert_tensor, 1};
  }
  return {};
}

namespace {

std::string_view name_of(Handover kind) {
  switch (kind) {
    case Handover::sum:
      return "sum_parts";
    case Handover::collect:
      return "collect_sequence";
    case Handover::scatter:
      return "scatter_parts";
    case Handover::heads:
      return "swap_heads";
    case Handover::expert_collect:
      return "collect_tokens";
    case Handover::expert_scatter:
      return "scatter_tokens";
  }
  return "";
}

std::vector<Mark> issue(StepWriter& writer, std::span<const Transfer> transfers, Mark ready) {
  std::vector<Mark> done;
  done.reserve(transfers.size());
  for (const Transfer& transfer : transfers)
    done.push_back(writer.collective(
        plan_of(transfer.kind), {transfer.bytes}, Stream::tensor,
        transfer.kind == Handover::heads ? Cause::sequence_parallel : Cause::tensor_parallel,
        name_of(transfer.kind), {ready}));
  return done;
}

void await(StepWriter& writer, const std::vector<Mark>& marks) {
  for (const Mark mark : marks) writer.hand_after(mark);
}

// Writes the copies around what ranks collect or scatter: it lies in pieces of tokens for each row,
// and a copy makes it so, or undoes it, and streams as fast as the device does.
void regroup(StepWriter& writer, std::span<const Transfer> transfers, Handover kind,
             bool backward) {
  const Stack& stack = writer.input().stack;
  if (stack.tensor_layers != TensorLayers::dtensor) return;
  for (const Transfer& transfer : transfers)
    if (transfer.kind == kind) {
      KernelRow copy = memory("regroup", 2 * transfer.bytes, 1);
      copy.share = 1 / stack.kernels.memory.number();
      writer.run({copy}, backward, Cause::tensor_parallel, "regroup");
    }
}

void hand_over(StepWriter& writer, std::span<const Transfer> transfers, bool backward) {
  regroup(writer, transfers, Handover::scatter, backward);
  await(writer, issue(writer, transfers, writer.to_hand_on()));
  regroup(writer, transfers, Handover::collect, backward);
}

void run_overlapped(StepWriter& writer, const Unit& unit, const std::vector<KernelRow>& rows,
                    Cause cause) {
  const std::vector<Mark> input = issue(writer, unit.hand.arrive_back, writer.last_host());
  writer.run(half_of_backward(rows, false), true, cause, unit.name);
  const std::vector<Mark> gradient = issue(writer, unit.hand.leave_back, writer.last_compute());
  await(writer, input);
  writer.run(half_of_backward(rows, true), true, cause, unit.name);
  await(writer, gradient);
}

// PyTorch's asynchronous tensor parallelism, or Transformer Engine's user buffers: the product
// behind a collection, or before a scattering, is cut into a piece for each rank. Of what the
// gradients of inputs are sums of several products, so their scattering stays as it is; and so does
// what goes beside a whole product of the backward pass. What is cast behind its collection is no
// input of the product, so nothing is cut there (PyTorch @00122fb,
// torch/_inductor/fx_passes/micro_pipeline_tp.py: consumers are looked for through views alone).
bool in_pieces(const Strategy& strategy, const std::vector<Transfer>& transfers, Handover kind) {
  return strategy.tensor_parallel.in_pieces && transfers.size() == 1 &&
         transfers.front().kind == kind;
}

const std::vector<Transfer>& arriving(const Unit& unit, Phase phase) {
  if (phase == Phase::backward) return unit.hand.arrive_back;
  return phase == Phase::recompute ? unit.hand.arrive_again : unit.hand.arrive;
}

bool leaves_again(const Strategy& strategy, const Unit& unit) {
  const bool single = strategy.checkpointing == Checkpointing::operators;
  return !single && unit.sends_again && !unit.again.empty();
}

// Bytes of what comes to a product, and of what goes from it, piece by piece; 0: nothing does.
struct Pieces {
  double come = 0, go = 0;
};
Pieces pieces_of(const Strategy& strategy, const Unit& unit, Phase phase) {
  Pieces pieces;
  if (unit.memory.result <= 0) return pieces;  // no product of a layer: what a compiler is given
  if (phase == Phase::recompute && !unit.sends_again) return pieces;
  const bool backward = phase == Phase::backward;
  if (backward && unit.hand.overlapped) return pieces;
  const auto& arrive = arriving(unit, phase);
  const bool cast_behind = is_narrow(unit, phase) && strategy.precision.collected >= bytes_16;
  if (!cast_behind && in_pieces(strategy, arrive, Handover::collect))
    pieces.come = arrive.front().bytes;
  if (backward || (phase == Phase::recompute && !leaves_again(strategy, unit))) return pieces;
  if (in_pieces(strategy, unit.hand.leave, Handover::scatter))
    pieces.go = unit.hand.leave.front().bytes;
  return pieces;
}

void run_pieces(StepWriter& writer, const Unit& unit, const std::vector<KernelRow>& rows,
                bool backward, Cause cause, Pieces pieces) {
  const std::int64_t ranks = writer.input().strategy.tensor_parallel.size;
  const double share = 1 / static_cast<double>(ranks);
  std::vector<KernelRow> piece = backward ? half_of_backward(rows, false) : rows;
  for (KernelRow& row : piece) row.flops *= share, row.bytes *= share, row.rows *= share;
  const auto pass = [&](double bytes, Mark ready) {
    return writer.collective(Plan::tensor_pass, {bytes * share}, Stream::tensor,
                             Cause::tensor_parallel, "pass_piece", {ready});
  };
  const Mark ready = writer.last_compute();
  Mark last = ready;
  for (std::int64_t i = 0; i < ranks; ++i) {
    std::optional<Mark> next;
    if (pieces.come > 0 && i + 1 < ranks) next = pass(pieces.come, ready);
    const Mark made = writer.run(piece, backward, cause, unit.name);
    if (pieces.go > 0 && i + 1 < ranks) last = pass(pieces.go, made);
    if (next) writer.compute_after(*next);
  }
  if (backward) writer.run(half_of_backward(rows, true), true, cause, unit.name);
  if (pieces.go <= 0) return;
  writer.compute_after(last);
  writer.run({memory("sum_pieces", (1 + share) * pieces.go, 1)}, backward, Cause::tensor_parallel,
             "sum_pieces");
}

Mark pass_on(StepWriter& writer, double bytes, Mark ready) {
  return writer.collective(Plan::ring_pass, {bytes}, Stream::tensor, Cause::sequence_parallel,
                           "pass_keys", {ready});
}

// Runs a block of attention per rank of the ring. Keys and values of the next block come meanwhile;
// in the backward pass their gradients follow each block, and the last ones are waited for.
void run_ring(StepWriter& writer, const Unit& unit, const std::vector<KernelRow>& rows,
              bool backward, Cause cause) {
  const RingRows split = rows_in_ring(unit, rows);
  if (!split.around.empty() && !backward) writer.run(split.around, backward, cause, unit.name);
  const Mark ready = writer.last_compute();
  for (std::int64_t round = 0; round < unit.hand.rounds; ++round) {
    std::optional<Mark> next;
    if (round + 1 < unit.hand.rounds) next = pass_on(writer, unit.hand.passed, ready);
    const Mark last = writer.run(split.block, backward, cause, unit.name);
    if (backward) {
      const Mark gradient = pass_on(writer, unit.hand.passed_back, last);
      if (!next) writer.compute_after(gradient);
    }
    if (next) writer.compute_after(*next);
  }
  if (!split.around.empty() && backward) writer.run(split.around, backward, cause, unit.name);
}

}  // namespace

RingRows rows_in_ring(const Unit& unit, const std::vector<KernelRow>& rows) {
  const auto core = rows.end() - std::min<std::ptrdiff_t>(unit.core_rows, std::ssize(rows));
  RingRows split{{rows.begin(), core}, {core, rows.end()}};
  const auto rounds = static_cast<double>(unit.hand.rounds);
  for (KernelRow& row : split.block) {
    row.flops /= rounds;
    row.bytes /= rounds;
    if (row.kind == KernelClass::attention) row.depth /= rounds;
  }
  return split;
}

bool is_narrow(const Unit& unit, Phase phase) {
  return unit.narrow > 0 && (phase == Phase::forward || !unit.narrow_once);
}

// Returns what kernels wait for; what was kept need not come again: see checkpointing.hpp.
Awaited awaited(const Strategy& strategy, const Unit& unit, Phase phase) {
  const bool backward = phase == Phase::backward, again = phase == Phase::recompute;
  if (backward && unit.hand.overlapped) return {};
  const Pieces pieces = pieces_of(strategy, unit, phase);
  Awaited all;
  if (pieces.come <= 0 && (!again || unit.sends_again)) all.before = arriving(unit, phase);
  if (pieces.go <= 0 && (!again || leaves_again(strategy, unit)))
    all.behind = backward ? unit.hand.leave_back : unit.hand.leave;
  return all;
}

void arrive(StepWriter& writer, const Unit& unit, Phase phase) {
  hand_over(writer, awaited(writer.input().strategy, unit, phase).before, phase == Phase::backward);
}

void leave(StepWriter& writer, const Unit& unit, Phase phase) {
  hand_over(writer, awaited(writer.input().strategy, unit, phase).behind, phase == Phase::backward);
}

void run_kernels(StepWriter& writer, const Unit& unit, const std::vector<KernelRow>& rows,
                 Phase phase, Cause cause, bool lasting) {
  const bool backward = phase == Phase::backward;
  const Pieces pieces = pieces_of(writer.input().strategy, unit, phase);
  if (pieces.come > 0 || pieces.go > 0)
    run_pieces(writer, unit, rows, backward, cause, pieces);
  else if (backward && unit.hand.overlapped)
    run_overlapped(writer, unit, rows, cause);
  else if (unit.hand.rounds > 1)
    run_ring(writer, unit, rows, backward, cause);
  else if (lasting)
    writer.run_lasting(rows, backward, cause, unit.name);
  else
    writer.run(rows, backward, cause, unit.name);
}

void run_inputs(StepWriter& writer, const Unit& unit, Cause cause) {
  if (!unit.hand.overlapped)
    return run_kernels(writer, unit, unit.parts->inputs, Phase::backward, cause, true);
  writer.run_lasting(unit.parts->inputs, true, cause, unit.name);
  await(writer, issue(writer, unit.hand.leave_back, writer.last_compute()));
}

void run_weights(StepWriter& writer, const Unit& unit, Cause cause) {
  if (unit.hand.overlapped)
    await(writer, issue(writer, unit.hand.arrive_back, writer.last_compute()));
  writer.run_lasting(unit.parts->weights, true, cause, unit.name);
}

}  // namespace stepsim
