// A difference that was planted is what the largest row of the gap names.
#include <algorithm>
#include <functional>

#include "analysis/breakdown.hpp"
#include "sim/engine/own/replay.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {
namespace {

constexpr std::uint32_t ranks = 4;

struct Planted {
  Platform platform;
  OpGraph graph;
};

// Unfolded, so that single ranks and links can be told apart.
Planted as_it_is(const TinyStep& step) {
  StepProgram program = build_step(step.input(), Folding::off);
  return {program.traffic.folded.platform, std::move(program.graph)};
}

// The same program, in which each rank's host waits for the device after every layer of the forward
// pass, and spends `seconds` on it.
OpGraph with_syncs(const OpGraph& graph, double seconds) {
  OpGraph result;
  for (const Pattern& pattern : graph.patterns()) result.pattern(pattern);
  std::vector<OpId> made;  // [operation of the old one]
  std::vector<std::optional<OpId>> host(ranks), sync(ranks), kernel(ranks);
  std::vector<std::int16_t> layer(ranks, -1);
  const auto ends_layer = [&](const Op& op) {
    return op.kind == OpKind::host && op.phase == Phase::forward && op.layer > layer[op.rank] &&
           kernel[op.rank].has_value();
  };
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = graph[id];
    if (ends_layer(op)) {
      Op stop{.kind = OpKind::host,
              .phase = op.phase,
              .cause = Cause::routing_sync,
              .rank = op.rank,
              .layer = layer[op.rank],
              .seconds = {seconds}};
      sync[op.rank] = result.add(stop, {*host[op.rank], *kernel[op.rank]});
      layer[op.rank] = op.layer;
    }
    std::vector<OpId> after;
    for (const OpId before : graph.predecessors(id)) after.push_back(made[index(before)]);
    if (op.kind == OpKind::host && sync[op.rank]) after.push_back(*sync[op.rank]);
    Op copy = op;
    copy.name = result.name("");
    made.push_back(result.add(copy, after));
    if (op.kind == OpKind::host) host[op.rank] = made.back();
    if (op.kind == OpKind::compute) kernel[op.rank] = made.back();
  }
  return result;
}

struct Seen {
  double step_time = 0;
  ByCause<double> exposed{};
};

Seen seen(const Planted& planted) {
  return in_worker([&] {
    const Trace trace = replay(planted.platform, planted.graph);
    Seen result{.step_time = trace.makespan.value};
    for (const BreakdownRow& row :
         break_down(planted.graph, trace, busiest_rank(planted.graph, trace)).rows)
      result.exposed[index(row.cause)] = row.exposed.value;
    return result;
  });
}

Cause largest_row(const Planted& slow, const Planted& fast) {
  const Seen a = seen(slow), b = seen(fast);
  CHECK(a.step_time > b.step_time);
  std::size_t largest = 0;
  for (std::size_t i = 0; i < cause_count; ++i)
    if (a.exposed[i] - b.exposed[i] > a.exposed[largest] - b.exposed[largest]) largest = i;
  return static_cast<Cause>(largest);
}

// Models of three kinds, three layers of each: grouped heads and a gated unit, one block with
// biases and full attention, experts; and two ways to share them out.
std::vector<Variant> some_variants() {
  std::vector<Variant> list = tiny_variants(1, ranks);
  std::erase_if(list, [](const Variant& each) {
    return each.name != "zero 3" && each.name != "zero 3, leaf modules" && each.name != "fsdp";
  });
  for (const char* name : {"llama-3.2-3b", "mpt-7b", "mixtral-8x7b"}) {
    Model model = load_model(source_data(), name);
    model.layers = 3;
    TinyStep step = tiny_step(Sharding::zero3, model, 1, ranks);
    step.job.sequence = 2048;  // so that a pass takes longer than an update
    step.strategy.zero.leaf_modules = model.experts.has_value();
    list.push_back({name, std::move(step)});
  }
  return list;
}

}  // namespace

TEST_CASE("one rank that computes a fifth slower is found", "[analysis][slow]") {
  for (const Variant& variant : some_variants()) {
    CAPTURE(variant.name);
    Planted fast = as_it_is(variant.step);
    for (Device& device : fast.platform.devices)
      device.speed = 1e-4;  // kernels are what it waits for
    Planted slow = fast;
    slow.platform.devices[2].speed *= 0.8;
    const Cause cause = largest_row(slow, fast);
    CHECK((cause == Cause::compute || cause == Cause::recompute));
  }
}

TEST_CASE("one link at half its speed is found", "[analysis][slow]") {
  for (const Variant& variant : some_variants()) {
    CAPTURE(variant.name);
    Planted fast = as_it_is(variant.step);
    // A machine whose links are what it waits for; then the one that a gather uses most.
    for (Link& link : fast.platform.links) link.capacity = link.capacity / 5000;
    Planted slow = fast;
    for (const Pattern& pattern : slow.graph.patterns())
      for (const Round& round : pattern.rounds)
        for (const Flow& flow : round.flows)
          if (&flow == &round.flows.front() && pattern.name.starts_with("all_gather"))
            slow.platform.links[index(flow.path.front())].capacity =
                fast.platform.links[index(flow.path.front())].capacity / 2;
    const Cause cause = largest_row(slow, fast);
    CHECK((cause == Cause::gather_bytes || cause == Cause::gradient_reduce));
  }
}

TEST_CASE("one more wait of the host in every layer is found", "[analysis][slow]") {
  for (const Variant& variant : some_variants()) {
    CAPTURE(variant.name);
    const Planted fast = as_it_is(variant.step);
    const double step = seen(fast).step_time;
    const Planted slow{fast.platform, with_syncs(fast.graph, step / 20)};
    CHECK(largest_row(slow, fast) == Cause::routing_sync);
  }
}

}  // namespace stepsim
