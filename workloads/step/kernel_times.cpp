#include "workloads/step/kernel_times.hpp"

#include "workloads/pipeline/stages.hpp"
#include "workloads/program/rank_part.hpp"
#include "workloads/program/run_shared.hpp"
#include "workloads/sharding/schemes.hpp"
#include "workloads/sharding/updates.hpp"
#include "workloads/strategy/row_lengths.hpp"

namespace stepsim {
namespace {

struct KernelSum {
  const StepInput& input;
  KernelTimes times{};

  void add(const std::vector<KernelRow>& rows, bool backward, double count) {
    for (const KernelRow& row : rows) {
      const double seconds =
          count * device_time(input.cluster.gpu, input.stack, {row}, backward).value;
      switch (row.kind) {
        case KernelClass::gemm:
        case KernelClass::grouped_gemm:
          times.products += seconds;
          break;
        case KernelClass::attention:
          times.attention += seconds;
          break;
        case KernelClass::memory:
          times.other += seconds;
      }
    }
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
    if (backward && unit.trained && !unit.tensors.empty())
      add(with_scheme(input.strategy, [&]<Scheme S>() { return S::gradient_kernels(input, unit); }),
          true, count);
  }
};

}  // namespace

KernelTimes kernel_times(const StepInput& asked) {
  StepInput input = asked;
  input.job = usual_rows(asked.job, asked.strategy, asked.cluster);
  const std::vector<StageShare> stages = share_out(input.model, input.strategy.pipeline_parallel);
  const bool alone = stages.size() == 1;
  const RankPart rank = rank_part({input.cluster, alone ? input.model : stages.front().model,
                                   input.stack, input.strategy, input.job});
  KernelSum sum{rank.input};
  if (!input.job.only_update)
    for (const Visit& visit : visits_of(rank.units, other_passes(input.job, rank.units)))
      sum.add(visit, static_cast<double>(input.job.accumulation));
  if (input.strategy.optimizer_place == Offload::none)
    sum.add({memory("update", optimizer_traffic_bytes(rank) * rank.shares.updated, 1)}, false, 1);
  return sum.times;
}

}  // namespace stepsim
