#include "workloads/run_shared.hpp"

#include <algorithm>

namespace stepsim {
namespace {

World plan_of(Handover kind) {
  switch (kind) {
    case Handover::sum:
      return World::tensor_sum;
    case Handover::collect:
      return World::tensor_collect;
    case Handover::scatter:
      return World::tensor_scatter;
    case Handover::heads:
      return World::swap_heads;
    case Handover::expert_collect:
      return World::expert_collect;
    case Handover::expert_scatter:
      return World::expert_sum;
  }
  return World::tensor_sum;
}

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

std::vector<Mark> issue(StepWriter& writer, const std::vector<Transfer>& transfers, Mark ready) {
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
  for (const Mark mark : marks) writer.compute_after(mark);
}

// What ranks collect or scatter lies in pieces of tokens for each row; a copy makes it so, or
// undoes it.
void regroup(StepWriter& writer, const std::vector<Transfer>& transfers, Handover kind,
             bool backward) {
  if (writer.input().stack.tensor_layers != TensorLayers::dtensor) return;
  for (const Transfer& transfer : transfers)
    if (transfer.kind == kind)
      writer.run({memory("regroup", 2 * transfer.bytes, 1)}, backward, Cause::tensor_parallel,
                 "regroup");
}

void hand_over(StepWriter& writer, const std::vector<Transfer>& transfers, bool backward) {
  regroup(writer, transfers, Handover::scatter, backward);
  await(writer, issue(writer, transfers, writer.last_compute()));
  regroup(writer, transfers, Handover::collect, backward);
}

// The backward pass of a product is two of them: for its input, and for its weights.
std::vector<KernelRow> part_of(const std::vector<KernelRow>& rows, bool of_weights) {
  std::vector<KernelRow> part;
  for (KernelRow row : rows) {
    const bool product = row.kind == KernelClass::gemm;
    if (product && row.rows > 0) {  // a row for each of them
      if (row.of_weights == of_weights) part.push_back(row);
      continue;
    }
    if (!product && of_weights) continue;
    if (product) {
      row.flops /= 2;
      row.bytes /= 2;
      row.launches /= 2;
      if (row.operators) *row.operators /= 2;
    }
    part.push_back(row);
  }
  return part;
}

void run_overlapped(StepWriter& writer, const Unit& unit, const std::vector<KernelRow>& rows,
                    Cause cause) {
  const std::vector<Mark> input = issue(writer, unit.hand.arrive_back, writer.last_host());
  writer.run(part_of(rows, false), true, cause, unit.name);
  const std::vector<Mark> gradient = issue(writer, unit.hand.leave_back, writer.last_compute());
  await(writer, input);
  writer.run(part_of(rows, true), true, cause, unit.name);
  await(writer, gradient);
}

Mark pass_on(StepWriter& writer, double bytes, Mark ready) {
  return writer.collective(World::ring_pass, {bytes}, Stream::tensor, Cause::sequence_parallel,
                           "pass_keys", {ready});
}

// A block of attention per rank of the ring. Keys and values of the next block come meanwhile; in
// the backward pass their gradients follow each block, and the last ones are waited for.
void run_ring(StepWriter& writer, const Unit& unit, const std::vector<KernelRow>& rows,
              bool backward, Cause cause) {
  const auto core = rows.end() - std::min<std::ptrdiff_t>(unit.core_rows, std::ssize(rows));
  if (core != rows.begin() && !backward)
    writer.run({rows.begin(), core}, backward, cause, unit.name);
  std::vector<KernelRow> block(core, rows.end());
  for (KernelRow& row : block) {
    row.flops /= static_cast<double>(unit.hand.rounds);
    row.bytes /= static_cast<double>(unit.hand.rounds);
    if (row.kind == KernelClass::attention) row.depth /= static_cast<double>(unit.hand.rounds);
  }
  const Mark ready = writer.last_compute();
  for (std::int64_t round = 0; round < unit.hand.rounds; ++round) {
    std::optional<Mark> next;
    if (round + 1 < unit.hand.rounds) next = pass_on(writer, unit.hand.passed, ready);
    const Mark last = writer.run(block, backward, cause, unit.name);
    if (backward) {
      const Mark gradient = pass_on(writer, unit.hand.passed_back, last);
      if (!next) writer.compute_after(gradient);
    }
    if (next) writer.compute_after(*next);
  }
  if (core != rows.begin() && backward)
    writer.run({rows.begin(), core}, backward, cause, unit.name);
}

}  // namespace

// What was kept need not come again: see checkpointing.hpp.
void arrive(StepWriter& writer, const Unit& unit, Phase phase) {
  const bool backward = phase == Phase::backward;
  if (backward && unit.hand.overlapped) return;
  if (phase == Phase::recompute && !unit.sends_again) return;
  hand_over(writer, backward ? unit.hand.arrive_back : unit.hand.arrive, backward);
}

void leave(StepWriter& writer, const Unit& unit, Phase phase) {
  const bool backward = phase == Phase::backward;
  if (backward && unit.hand.overlapped) return;
  const bool single = writer.input().strategy.checkpointing == Checkpointing::operators;
  if (phase == Phase::recompute && (single || !unit.sends_again || unit.again.empty())) return;
  hand_over(writer, backward ? unit.hand.leave_back : unit.hand.leave, backward);
}

void run_kernels(StepWriter& writer, const Unit& unit, const std::vector<KernelRow>& rows,
                 Phase phase, Cause cause) {
  const bool backward = phase == Phase::backward;
  if (backward && unit.hand.overlapped)
    run_overlapped(writer, unit, rows, cause);
  else if (unit.hand.rounds > 1)
    run_ring(writer, unit, rows, backward, cause);
  else
    writer.run(rows, backward, cause, unit.name);
}

}  // namespace stepsim
