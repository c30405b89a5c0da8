#include "analysis/studies/predict/kernel_times.hpp"

#include <algorithm>

#include "analysis/studies/predict/replayed_step.hpp"
#include "workloads/pipeline/stages.hpp"
#include "workloads/program/rank_part.hpp"
#include "workloads/program/run_shared.hpp"
#include "workloads/program/visits.hpp"

namespace stepsim {
namespace {

// Products and attention are told apart by the rows that the step writer runs.
struct ArithmeticSum {
  const StepInput& input;
  KernelTimes times{};

  void add(const std::vector<KernelRow>& rows, bool backward, double count) {
    for (const KernelRow& row : rows)
      if (row.kind != KernelClass::memory)
        (row.kind == KernelClass::attention ? times.attention : times.products) +=
            count * device_time(input.cluster.gpu, input.stack, {row}, backward).value;
  }

  void add(const Visit& visit, double count) {
    const Unit& unit = *visit.unit;
    const bool backward = visit.phase == Phase::backward;
    const std::vector<KernelRow>& rows = backward                          ? unit.backward
                                         : visit.phase == Phase::recompute ? unit.again
                                                                           : unit.forward;
    count *= static_cast<double>(unit.rounds);
    if (unit.hand.rounds > 1) {
      const RingRows ring = rows_in_ring(unit, rows);
      add(ring.around, backward, count);
      add(ring.block, backward, count * static_cast<double>(unit.hand.rounds));
    } else {
      add(rows, backward, count);
    }
  }
};

}  // namespace

KernelTimes kernel_times(const StepInput& input) {
  const std::vector<StageShare> stages = share_out(input.model, input.strategy.pipeline_parallel);
  const bool alone = stages.size() == 1;
  const RankPart rank = rank_part({input.cluster, alone ? input.model : stages.front().model,
                                   input.stack, input.strategy, input.job});
  ArithmeticSum sum{rank.input};
  const double batches =
      static_cast<double>(input.job.accumulation) * input.stack.stretch(input.job);
  if (!input.job.only_update)
    for (const Visit& visit : visits_of(rank.units, other_passes(input.job, rank.units)))
      sum.add(visit, batches);
  const ByCause<double> all = summed_over_step(input, [](const StepProgram& program) {
    ByCause<double> kernels{};
    kernels[index(Cause::compute)] = program.graph.sums().kernels;
    return kernels;
  });
  sum.times.other =
      std::max(0.0, all[index(Cause::compute)] - sum.times.products - sum.times.attention);
  return sum.times;
}

}  // namespace stepsim
