#include "tests/support/tiny_run.hpp"

namespace stepsim {
namespace {

Platform tiny_platform() {
  const LinkId there{0}, back{1};
  return {.links = {{"gpu0 -> gpu1", {2e9}, 1}, {"gpu1 -> gpu0", {4e9}, 2}},
          .devices = {{"gpu0", 1, 0.9, 0.8, {there}}, {"gpu1", 0.5, 1, 1, {back, there}}}};
}

PatternId add_gather(OpGraph& graph) {
  const LinkId there{0}, back{1};
  Round first{.latency = {2e-6}, .flows = {{0, 1, {there}, 0.5, 0.55}, {1, 0, {back}, 0.5, 0.55}}};
  Round second{.latency = {1e-6}, .flows = {{0, 1, {there, there}, 0.25, 0.25, 1e9}}};
  graph.pattern({.name = "send to itself", .members = {1}, .rounds = {}});
  return graph.pattern(
      {.name = "all_gather direct", .members = {0, 1}, .rounds = {first, second}, .occupancy = 0});
}

OpGraph tiny_graph() {
  OpGraph graph;
  const PatternId gather = add_gather(graph);
  const NameId attention = graph.name("attention"), unshard = graph.name("gather weights");
  const NameId activations = graph.name("activations"), weights = graph.name("weights");
  const Op compute{.kind = OpKind::compute,
                   .stream = Stream::compute,
                   .phase = Phase::forward,
                   .cause = Cause::compute,
                   .rank = 0,
                   .layer = 3,
                   .micro_batch = 1,
                   .name = attention,
                   .seconds = {1},
                   .flops = {5e14}};
  Op slow = compute, again = compute;
  slow.rank = 1;
  slow.seconds = {2};
  again.cause = Cause::recompute;
  again.phase = Phase::recompute;
  again.seconds = {0.5};
  const OpId one = graph.add(compute, {}), two = graph.add(slow, {});
  const OpId three = graph.add({.kind = OpKind::collective,
                                .stream = Stream::gather,
                                .phase = Phase::forward,
                                .cause = Cause::gather_bytes,
                                .rank = 0,
                                .name = unshard,
                                .pattern = gather,
                                .bytes = {1e9}},
                               {one, two});
  const OpId four = graph.add(again, {three});
  graph.allocate({three, true, Pool::device, 0, weights, 2e9});
  graph.allocate({three, false, Pool::device, 0, weights, -2e9});
  graph.allocate({one, true, Pool::device, 0, activations, 3e9});
  graph.allocate({four, false, Pool::device, 0, activations, -3e9});
  graph.allocate({two, true, Pool::pinned, 1, weights, 9e9});
  return graph;
}

}  // namespace

Run tiny_run() {
  Run run{.scenario = "name: tiny, größer als null\njob: {method: sft}\n",
          .platform = tiny_platform(),
          .graph = tiny_graph(),
          .trace = {},
          .lane_sizes = {1, 3},
          .constants = {},
          .summary = {}};
  run.trace = {.ready = {0, 0, 1, 2.5},
               .start = {0, 0, 2, 2.5},
               .finish = {1, 2, 2.5, 3},
               .links = {{7.5e8, {0.5}}, {5e8, {0.25}}},
               .makespan = {3},
               .repeat = {},
               .activities = 9};
  run.constants = {
      {"gpu.bandwidth", Dimension::bytes_per_second, 3e12, 2.9e12, 3.1e12, Grade::measured, "µs"},
      {"stack.efficiency", Dimension::ratio, 0.5, 0.25, 0.75, Grade::guess, ""}};
  run.summary = {{"step_time", 3, Dimension::seconds},
                 {"mfu", 0.25, Dimension::ratio},
                 {"peak_memory", 5e9, Dimension::bytes}};
  return run;
}

}  // namespace stepsim
