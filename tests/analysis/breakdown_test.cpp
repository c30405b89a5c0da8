#include "analysis/breakdown.hpp"

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"
#include "tests/support/tiny_run.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"

using namespace stepsim;

namespace {

double sum_of_rows(const Breakdown& breakdown) {
  double sum = breakdown.idle.value;
  for (const BreakdownRow& row : breakdown.rows) sum += row.exposed.value;
  return sum;
}

const BreakdownRow& row_of(const Breakdown& breakdown, Cause cause) {
  for (const BreakdownRow& row : breakdown.rows)
    if (row.cause == cause) return row;
  FAIL("no row for " << to_text(cause));
  return breakdown.rows.front();
}

// Operations of rank 0 with times of their own, in no order.
struct Timed {
  OpKind kind;
  Cause cause;
  double start, finish;
};
Breakdown breakdown_of(const std::vector<Timed>& list, double makespan) {
  OpGraph graph;
  Trace trace;
  for (const Timed& each : list) {
    graph.add({.kind = each.kind, .cause = each.cause}, {});
    trace.start.push_back(each.start);
    trace.finish.push_back(each.finish);
  }
  trace.makespan = {makespan};
  return break_down(graph, trace, 0);
}

}  // namespace

TEST_CASE("an instant belongs to the kernel, then to traffic, then to the host", "[analysis]") {
  const Breakdown result = breakdown_of({{OpKind::host, Cause::launch, 0, 4},
                                         {OpKind::collective, Cause::gather_bytes, 1, 7},
                                         {OpKind::compute, Cause::compute, 2, 5},
                                         {OpKind::host, Cause::module_hooks, 8, 9}},
                                        10);
  CHECK(row_of(result, Cause::launch).exposed.value == 1);        // 0 to 1
  CHECK(row_of(result, Cause::launch).hidden.value == 3);         // 1 to 4
  CHECK(row_of(result, Cause::gather_bytes).exposed.value == 3);  // 1 to 2, 5 to 7
  CHECK(row_of(result, Cause::gather_bytes).hidden.value == 3);   // 2 to 5
  CHECK(row_of(result, Cause::compute).exposed.value == 3);
  CHECK(row_of(result, Cause::compute).hidden.value == 0);
  CHECK(row_of(result, Cause::module_hooks).exposed.value == 1);
  CHECK(result.idle.value == 2);  // 7 to 8, 9 to 10
  CHECK(result.rows.size() == 4);
}

TEST_CASE("a cause that overlaps itself is busy once", "[analysis]") {
  const Breakdown result = breakdown_of({{OpKind::collective, Cause::gather_bytes, 0, 3},
                                         {OpKind::collective, Cause::gather_bytes, 1, 2},
                                         {OpKind::host, Cause::gather_bytes, 2, 4}},
                                        4);
  REQUIRE(result.rows.size() == 1);
  CHECK(result.rows.front().exposed.value == 4);
  CHECK(result.rows.front().hidden.value == 0);
  CHECK(result.idle.value == 0);
}

TEST_CASE("joins and operations of no length have no row, the largest row is first", "[analysis]") {
  const Breakdown result = breakdown_of({{OpKind::join, Cause::launch, 0, 5},
                                         {OpKind::compute, Cause::optimizer, 1, 1},
                                         {OpKind::compute, Cause::compute, 0, 1},
                                         {OpKind::compute, Cause::recompute, 1, 3}},
                                        5);
  REQUIRE(result.rows.size() == 2);
  CHECK(result.rows.front().cause == Cause::recompute);
  CHECK(result.idle.value == 2);
}

TEST_CASE("a rank's breakdown counts the collectives it takes part in and no other rank's kernels",
          "[analysis]") {
  const Run run = tiny_run();  // rank 1 computes for 2 s, then both gather for 0.5 s
  const Breakdown one = break_down(run.graph, run.trace, 1);
  CHECK_THAT(row_of(one, Cause::compute).exposed.value, exactly(2));
  CHECK_THAT(row_of(one, Cause::gather_bytes).exposed.value, exactly(0.5));
  CHECK_THAT(one.idle.value, exactly(0.5));
  const Breakdown zero = break_down(run.graph, run.trace, 0);
  CHECK_THAT(row_of(zero, Cause::compute).exposed.value, exactly(1));
  CHECK_THAT(row_of(zero, Cause::recompute).exposed.value, exactly(0.5));
  CHECK_THAT(zero.idle.value, exactly(1));  // it waits for rank 1
}

TEST_CASE("rows and idle time add up to the step, on every rank of every kind of step",
          "[analysis]") {
  for (const Variant& variant : tiny_variants(2, 4)) {
    CAPTURE(variant.name);
    const std::vector<double> off = numbers_from_worker([&] {
      const Replayed replayed = play(variant.step, Folding::off);
      std::vector<double> differences;
      for (Rank rank = 0; rank < 8; ++rank)
        differences.push_back(
            sum_of_rows(break_down(replayed.program.graph, replayed.trace, rank)) /
                replayed.trace.makespan.value -
            1);
      return differences;
    });
    for (const double difference : off) CHECK(std::abs(difference) < 1e-12);
  }
}
