#include "workloads/sharding/scheme_facts.hpp"

#include "workloads/sharding/schemes.hpp"

namespace stepsim {

SchemeFacts facts_of(const Strategy& strategy) {
  return with_scheme(strategy, [&]<Scheme S>() { return S::facts(strategy); });
}

std::vector<Sharding> further_stages(const Strategy& strategy) {
  std::vector<Sharding> stages;
  for (const Sharding stage : {Sharding::zero1, Sharding::zero2, Sharding::zero3}) {
    const bool piped = strategy.pipeline_parallel.size > 1;  // needs stage 0 or 1
    const bool exchanged = strategy.experts.parallel > 1;    // DeepSpeed rejects it at stage 3
    if (strategy.sharding >= stage || (piped && stage != Sharding::zero1) ||
        (exchanged && stage == Sharding::zero3))
      continue;
    stages.push_back(stage);
  }
  return stages;
}

}  // namespace stepsim
