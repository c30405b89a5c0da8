// This times collectives on a cluster, one after the other.
#pragma once

#include <vector>

#include "sim/symmetry.hpp"
#include "sim/trace.hpp"
#include "workloads/collectives/plan.hpp"

namespace stepsim {

struct Timed {
  Run run;                                   // graph, platform and trace
  std::vector<std::vector<double>> seconds;  // [candidate, over all plans][group]
};

// All candidates of all plans with the same bytes each: the groups of one together, then, after a
// join of all ranks, those of the next. Replays, so once per process.
Timed play(const Machinery& machinery, std::vector<CollectivePlan> plans, Bytes bytes,
           Folding folding = Folding::automatic);
Timed play(const Cluster& cluster, std::vector<CollectivePlan> plans, Bytes bytes,
           Folding folding = Folding::automatic);

// Seconds of one collective of one group over the whole cluster or of the ranks given.
struct Question {
  Collective kind{};
  std::string algorithm{};
  Detail detail = Detail::fluid;
  std::vector<Rank> ranks{};  // empty: all
};
CollectivePlan plan_of(const Cluster& cluster, const Question& question);
Timed play(const Cluster& cluster, const Question& question, Bytes bytes,
           Folding folding = Folding::automatic);

}  // namespace stepsim
