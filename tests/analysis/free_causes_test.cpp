// These tests make one cause of a step free: a collective alone is never slower for it.
#include <set>

#include "sim/engine/own/replay.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/tiny_program.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

Op with(Op op, Cause cause) {
  op.cause = cause;
  return op;
}

double makespan(const Platform& platform, const OpGraph& graph, CauseSet free) {
  return numbers_from_worker([&] {
           return std::vector<double>{replay(platform, idealised(graph, free)).makespan.value};
         })
      .front();
}

}  // namespace

TEST_CASE("one collective is never slower because something else is free", "[analysis]") {
  Platform platform = tiny_platform({100});
  platform.devices[0].compute_share = 0.6;
  platform.devices[0].collective_share = 0.7;
  platform.devices[0].engines = {LinkId{0}};
  OpGraph graph;
  const OpId launch = graph.add(with(host_op(0, 1), Cause::launch), {});
  graph.add(with(compute_op(0, 2), Cause::compute), {});
  graph.add(with(compute_op(0, 2), Cause::recompute), {launch});
  graph.add(
      with(traffic_op(graph.pattern(one_round(0.5, {flow_over({0})})), 300), Cause::gather_bytes),
      {launch});
  const double whole = makespan(platform, graph, {});
  for (std::size_t i = 0; i < cause_count; ++i)
    CHECK(makespan(platform, graph, CauseSet(1u << i)) <= whole);
}

// Returns a program with the pattern behind the host's launch on each of its members, which compute
// meanwhile.
OpGraph with_kernels_beside(const Pattern& pattern) {
  OpGraph graph;
  std::vector<OpId> launched;
  for (const Rank rank : pattern.members) {
    launched.push_back(graph.add(with(host_op(rank, 1e-4), Cause::launch), {}));
    graph.add(with(compute_op(rank, 2e-3), Cause::compute), {});
    graph.add(with(compute_op(rank, 2e-3), Cause::recompute), {launched.back()});
  }
  Op op = traffic_op(graph.pattern(pattern), 1e8);
  op.kind = OpKind::collective;
  op.rank = pattern.members.front();
  graph.add(with(op, Cause::gather_bytes), launched);
  return graph;
}

TEST_CASE("nor is any collective of a training step", "[analysis]") {
  std::set<std::string> seen;
  for (const Variant& variant : tiny_variants(2, 4)) {
    const StepProgram program = build_step(variant.step.input(), Folding::automatic);
    const Platform& platform = program.traffic.folded.platform;
    for (const Pattern& pattern : program.graph.patterns()) {
      if (pattern.members.empty() || !seen.insert(pattern.name).second) continue;
      CAPTURE(variant.name, pattern.name);
      const OpGraph graph = with_kernels_beside(pattern);
      const double whole = makespan(platform, graph, {});
      for (std::size_t i = 0; i < cause_count; ++i)
        CHECK(makespan(platform, graph, CauseSet(1u << i)) <= whole * (1 + 1e-12));
    }
  }
  CHECK(seen.size() >= 8);
}

}  // namespace stepsim
