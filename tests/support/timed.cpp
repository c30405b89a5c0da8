#include "tests/support/timed.hpp"

#include "sim/engine/own/replay.hpp"
#include "tests/support/tiny_cluster.hpp"

namespace stepsim {

Timed play(const Machinery& machinery, std::vector<CollectivePlan> plans, Bytes bytes,
           Folding folding) {
  std::vector<Family> families;
  for (const CollectivePlan& plan : plans)
    for (const Candidate& candidate : plan.candidates) families.push_back(candidate.patterns);
  const Folded folded = fold(machinery, families, folding);

  Timed result;
  result.run.platform = folded.platform;
  result.run.lane_sizes = folded.lane_sizes;
  OpGraph& graph = result.run.graph;
  std::vector<std::vector<OpId>> ops;  // [family][pattern]
  std::vector<OpId> before;
  for (const Family& family : folded.families) {
    std::vector<OpId>& made = ops.emplace_back();
    for (const Pattern& pattern : family) {
      const Rank first = pattern.members.front();
      made.push_back(graph.add({.kind = OpKind::collective,
                                .stream = Stream::gather,
                                .rank = first,
                                .pattern = graph.pattern(pattern),
                                .bytes = bytes},
                               before));
    }
    before = {graph.add({.kind = OpKind::join}, made)};
  }
  result.run.trace = replay(result.run.platform, graph);
  for (std::size_t family = 0; family < families.size(); ++family) {
    std::vector<double>& seconds = result.seconds.emplace_back();
    for (const std::uint32_t pattern : folded.group_class[family]) {
      const std::size_t op = index(ops[family][pattern]);
      seconds.push_back(result.run.trace.finish[op] - result.run.trace.start[op]);
    }
  }
  return result;
}

Timed play(const Cluster& cluster, std::vector<CollectivePlan> plans, Bytes bytes,
           Folding folding) {
  return play(machinery_of(cluster), std::move(plans), bytes, folding);
}

CollectivePlan plan_of(const Cluster& cluster, const Question& question) {
  return plan_collective(
      cluster, question.kind, {question.ranks.empty() ? all_ranks(cluster) : question.ranks},
      {.algorithm = question.algorithm, .protocol = "simple", .detail = question.detail});
}

Timed play(const Cluster& cluster, const Question& question, Bytes bytes, Folding folding) {
  return play(cluster, std::vector{plan_of(cluster, question)}, bytes, folding);
}

}  // namespace stepsim
