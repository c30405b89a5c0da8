// Time divided among causes: laws on hand-made programs, and on steps of every strategy.
#include "analysis/studies/explain/attribution.hpp"

#include <cmath>
#include <numeric>
#include <set>

#include "analysis/studies/explain/explain.hpp"
#include "sim/engine/own/replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

Op with(Op op, Cause cause) {
  op.cause = cause;
  return op;
}

double sum_of_parts(const Attribution& attribution) {
  double sum = 0;
  for (const ShapleyValue& part : attribution.parts) sum += part.value;
  return sum;
}

double part(const Attribution& attribution, Cause cause) {
  return attribution.parts[index(cause)].value;
}

Attribution attribute(const TinyStep& step, const AttributionOptions& options = {}) {
  const StepProgram program = build_step(step.input(), Folding::automatic);
  return attribute(program.traffic.folded.platform, program.graph, options);
}

double makespan(const Platform& platform, const OpGraph& graph, CauseSet free) {
  return numbers_from_worker([&] {
           return std::vector<double>{replay(platform, idealised(graph, free)).makespan.value};
         })
      .front();
}

// Drawn orders, so that a case takes a second and not ten.
const AttributionOptions few{.most_replays = 1};

CauseSet only(Cause cause) {
  CauseSet set;
  set.add(cause);
  return set;
}

}  // namespace

TEST_CASE("one after the other: each cause has its own seconds", "[analysis]") {
  OpGraph graph;
  const OpId launch = graph.add(with(host_op(0, 2), Cause::launch), {});
  graph.add(with(compute_op(0, 3), Cause::compute), {launch});
  const Attribution a = attribute(tiny_platform({100}), graph);
  CHECK_THAT(a.step_time.value, exactly(5));
  CHECK_THAT(part(a, Cause::launch), exactly(2));
  CHECK_THAT(part(a, Cause::compute), exactly(3));
  CHECK_THAT(a.without[index(Cause::compute)].value, exactly(2));
  CHECK(a.rest.value == 0);
}

TEST_CASE("beside one another: equal causes share what they hide from each other", "[analysis]") {
  // Setting one of them free alone saves nothing; both save 3. By symmetry each has a half of it.
  OpGraph graph;
  graph.add(with(compute_op(0, 3), Cause::compute), {});
  graph.add(with(delay_op(0, 3), Cause::generation), {});
  const Attribution equal = attribute(tiny_platform({100}), graph);
  CHECK_THAT(part(equal, Cause::compute), exactly(1.5));
  CHECK_THAT(part(equal, Cause::generation), exactly(1.5));
  CHECK_THAT(equal.without[index(Cause::compute)].value, exactly(3));
}

TEST_CASE("beside one another: the longer one has what sticks out, and half of the rest",
          "[analysis]") {
  OpGraph graph;
  graph.add(with(compute_op(0, 5), Cause::compute), {});
  graph.add(with(delay_op(0, 3), Cause::generation), {});
  graph.add(with(host_op(0, 0), Cause::launch), {});  // costs nothing, so it has nothing
  const Attribution a = attribute(tiny_platform({100}), graph);
  CHECK_THAT(part(a, Cause::compute), exactly(2 + 1.5));
  CHECK_THAT(part(a, Cause::generation), exactly(1.5));
  CHECK(part(a, Cause::launch) == 0);
  CHECK_FALSE(a.active.has(Cause::launch));
}

TEST_CASE("what comes before everything else is a part of its own", "[analysis]") {
  OpGraph graph;
  const OpId begin = graph.add(with(host_op(0, 0.25), Cause::other), {});
  const OpId compute = graph.add(with(compute_op(0, 5), Cause::compute), {begin});
  graph.add(with(delay_op(0, 3), Cause::generation), {begin});
  graph.add(with(host_op(0, 1), Cause::launch), {compute});
  const Attribution a = attribute(tiny_platform({100}), graph);
  CHECK(a.replays == 8);  // and not 16
  CHECK_THAT(a.step_time.value, exactly(0.25 + 5 + 1));
  CHECK_THAT(part(a, Cause::other), exactly(0.25));
  CHECK_THAT(a.without[index(Cause::other)].value, exactly(6));
  CHECK_THAT(sum_of_parts(a), exactly(6.25));
}

TEST_CASE("a step that takes longer with a cause free is reported", "[analysis]") {
  // Two flows of 1 s on one link. The first is needed for a kernel of 2 s; the second comes after a
  // delay of 1 s, when the link is free. Without the delay both share the link.
  OpGraph graph;
  const PatternId pattern = graph.pattern(one_round(0, {flow_over({0})}));
  const OpId first = graph.add(with(traffic_op(pattern, 100), Cause::gather_bytes), {});
  graph.add(with(compute_op(0, 2), Cause::compute), {first});
  const OpId delay = graph.add(with(delay_op(0, 1), Cause::routing_sync), {});
  graph.add(with(traffic_op(pattern, 100), Cause::gradient_reduce), {delay});
  const Attribution a = attribute(tiny_platform({100}), graph);
  CHECK_THAT(a.step_time.value, exactly(3));
  CHECK_THAT(a.without[index(Cause::routing_sync)].value, exactly(4));
  REQUIRE(a.anomaly);
  CHECK(a.anomaly->cause == Cause::routing_sync);
  CHECK(a.anomaly->beside.empty());
  CHECK_THAT(a.anomaly->slower.value, exactly(1));
  CHECK_THAT(sum_of_parts(a), exactly(3));  // and the parts add up nevertheless
}

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
  for (const Cause cause : members(active_causes(graph)))
    CHECK(makespan(platform, graph, only(cause)) <= whole);
}

// A pattern behind the host's launch on each of its members, which compute meanwhile.
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
      for (const Cause cause : members(active_causes(graph)))
        CHECK(makespan(platform, graph, only(cause)) <= whole * (1 + 1e-12));
    }
  }
  CHECK(seen.size() >= 8);
}

TEST_CASE("parts of every strategy add up to its step", "[analysis]") {
  for (const Variant& variant : tiny_variants(1, 4)) {
    CAPTURE(variant.name);
    const Attribution a = attribute(variant.step, few);
    CHECK(std::abs(sum_of_parts(a) - a.step_time.value) < 1e-9 * a.step_time.value);
    CHECK(a.rest.value == 0);
    CHECK_THAT(a.step_time.value, exactly(seconds_of(variant.step)));
  }
}

TEST_CASE("rows of a gap add up, change sign when the sides change, and vanish between equals",
          "[analysis]") {
  const Attribution a = attribute(tiny_step(Sharding::zero3), few);
  const Attribution b = attribute(tiny_step(Sharding::zero2), few);
  double sum = 0;
  for (const ExplainRow& row : gap_rows(a, b)) {
    sum += row.seconds.value;
    for (const ExplainRow& other : gap_rows(b, a))
      if (other.cause == row.cause) {
        CHECK(other.seconds.value == -row.seconds.value);
        CHECK(other.in_a == row.in_b);
        CHECK(other.a_without == row.b_without);
      }
  }
  const double gap = a.step_time.value - b.step_time.value;
  CHECK(gap != 0);
  CHECK(std::abs(sum - gap) < 1e-9 * a.step_time.value);
  for (const ExplainRow& row : gap_rows(a, a)) {
    CHECK(row.seconds.value == 0);
    CHECK(row.closes == 0);
  }
}

TEST_CASE("the number of workers makes no difference", "[analysis]") {
  const TinyStep step = tiny_step(Sharding::zero3);
  const Attribution one = attribute(step, {.most_replays = 1, .workers = 1});
  const Attribution three = attribute(step, {.most_replays = 1, .workers = 3});
  for (std::size_t i = 0; i < cause_count; ++i) {
    CHECK(one.parts[i].value == three.parts[i].value);
    CHECK(one.without[i] == three.without[i]);
  }
}

}  // namespace stepsim
