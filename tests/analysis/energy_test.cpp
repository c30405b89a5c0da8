#include "analysis/energy.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "analysis/studies/predict/replayed_step.hpp"
#include "sim/base/lists.hpp"
#include "sim/engine/own/replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_pipeline.hpp"
#include "tests/support/tiny_step.hpp"

namespace stepsim {
namespace {

// The collectives and products of this board together pass its limit.
constexpr RankPower board{.idle = 100,
                          .memory = 400,
                          .compute = 650,
                          .communication = 300,
                          .limit = 700,
                          .host = 250,
                          .cores = 60,
                          .network = 40};

double of(const ByDrawer<double>& energy, Drawer drawer) {
  return energy[static_cast<std::size_t>(drawer)];
}
double of(const Energy& energy, Cause cause, Drawer drawer) {
  return of(energy.causes[index(cause)], drawer);
}

struct TimedOp {
  OpKind kind;
  Cause cause;
  double start, finish;
  std::uint8_t streaming = 0;
};
Energy energy_of_list(const std::vector<TimedOp>& list, double makespan, std::uint32_t ranks = 1) {
  OpGraph graph;
  Trace trace;
  for (const TimedOp& each : list) {
    graph.add({.kind = each.kind, .cause = each.cause, .streaming = each.streaming}, {});
    trace.start.push_back(each.start);
    trace.finish.push_back(each.finish);
  }
  trace.makespan = {makespan};
  return energy_of(graph, trace, std::vector{ranks}, board);
}

bool runs_on(const OpGraph& graph, const Op& op, Rank rank) {
  if (op.pattern == no_pattern) return op.rank == rank;
  return holds(graph.patterns()[index(op.pattern)].members, rank);
}

// Returns from the definition what a rank draws while these run.
double watts_of(const std::vector<const Op*>& running) {
  double products = 0;
  bool collective = false, update = false;
  for (const Op* op : running) {
    const double streaming = op->streaming / 32.0;
    if (op->kind == OpKind::compute) products += (1 - streaming) * 550 + streaming * 300;
    collective |= op->kind == OpKind::collective;
    update |= op->kind == OpKind::cpu;
  }
  return 100 + std::min(600.0, products + (collective ? 200 : 0)) + 250 + (update ? 60 : 0) + 40;
}

// Returns the same energy, found moment by moment and without causes.
double integral_of(const OpGraph& graph, const Trace& trace,
                   const std::vector<std::uint32_t>& sizes) {
  double sum = 0;
  const double end = trace.makespan.value - trace.repeat.added();
  for (Rank lane = 0; lane < sizes.size(); ++lane) {
    std::vector<std::size_t> mine;
    std::set<double> times{0, end};
    for (std::size_t i = 0; i < graph.size(); ++i)
      if (runs_on(graph, graph.ops()[i], lane) && trace.finish[i] > trace.start[i]) {
        mine.push_back(i);
        times.insert({trace.start[i], trace.finish[i]});
      }
    for (auto at = times.begin(); std::next(at) != times.end(); ++at) {
      const double from = *at, to = *std::next(at);
      std::vector<const Op*> running;
      for (const std::size_t i : mine)
        if (trace.start[i] <= from && trace.finish[i] >= to) running.push_back(&graph.ops()[i]);
      sum += sizes[lane] * trace.repeat.seconds(from, to) * watts_of(running);
    }
  }
  return sum;
}

Energy energy_of(const StepProgram& program, const Trace& trace) {
  return energy_of(program.graph, trace, program.traffic.folded.lane_sizes, board);
}

void check_same(const Energy& a, const Energy& b) {
  const double little = 1e-9 * b.total();
  for (std::size_t i = 0; i < drawer_names.size(); ++i) {
    CHECK_THAT(a.idle[i], Catch::WithinAbs(b.idle[i], little));
    for (std::size_t cause = 0; cause < cause_count; ++cause) {
      CAPTURE(cause_names[cause]);
      CHECK_THAT(a.causes[cause][i], Catch::WithinAbs(b.causes[cause][i], little));
    }
  }
}

double sum_of_causes(const Energy& energy) {
  double sum = std::accumulate(energy.idle.begin(), energy.idle.end(), 0.0);
  for (const auto& cause : energy.causes) sum = std::accumulate(cause.begin(), cause.end(), sum);
  return sum;
}

}  // namespace

TEST_CASE("operations add to what a device draws, up to its limit", "[analysis]") {
  const Energy energy = energy_of_list({{OpKind::compute, Cause::compute, 0, 4, 16},
                                        {OpKind::collective, Cause::gather_bytes, 2, 6},
                                        {OpKind::compute, Cause::recompute, 5, 6, 0},
                                        {OpKind::transfer, Cause::offload_transfer, 7, 8}},
                                       10, 3);
  // Half of the first kernel streams: 425 W above rest, and 200 W for the collective beside it pass
  // the 600 W that are left; so do 550 W and 200 W.
  CHECK_THAT(of(energy, Cause::compute, Drawer::gpus),
             WithinRel(3 * (2 * 525 + 2 * (100 + 425 * 600 / 625.0)), 1e-12));
  CHECK_THAT(of(energy, Cause::gather_bytes, Drawer::gpus),
             WithinRel(3 * (2 * 200 * 600 / 625.0 + 300 + 200 * 600 / 750.0), 1e-12));
  CHECK_THAT(of(energy, Cause::recompute, Drawer::gpus),
             WithinRel(3 * (100 + 550 * 600 / 750.0), 1e-12));
  CHECK(of(energy, Cause::offload_transfer, Drawer::gpus) == 300);
  CHECK(of(energy.idle, Drawer::gpus) == 3 * 3 * 100);
  CHECK(of(energy, Cause::compute, Drawer::hosts) == 3 * 4 * 250);
  CHECK(of(energy.by_drawer(), Drawer::hosts) == 3 * 10 * 250);
  CHECK(of(energy.by_drawer(), Drawer::network) == 3 * 10 * 40);
  CHECK(energy.standing.value == 3 * 390);
}

TEST_CASE("updates on the host are drawn by the hosts, once however many run", "[analysis]") {
  const Energy energy = energy_of_list(
      {{OpKind::cpu, Cause::cpu_optimizer, 0, 4}, {OpKind::cpu, Cause::optimizer, 2, 4}}, 4);
  CHECK(of(energy, Cause::cpu_optimizer, Drawer::hosts) == 4 * 250 + 3 * 60);
  CHECK(of(energy, Cause::optimizer, Drawer::hosts) == 60);
  CHECK(of(energy.by_drawer(), Drawer::gpus) == 400);
}

TEST_CASE("a stretch that stands for many takes as much energy as all of them", "[analysis]") {
  OpGraph graph;
  graph.add({.kind = OpKind::compute, .cause = Cause::compute}, {});
  Trace trace;
  trace.start = {1};
  trace.finish = {2};
  trace.repeat = {.begin = 1, .period = 1.5, .more = 9};
  trace.makespan = {4 + 9 * 1.5};
  const Energy energy = energy_of(graph, trace, std::vector<std::uint32_t>{1}, board);
  CHECK_THAT(of(energy, Cause::compute, Drawer::gpus), WithinRel(10 * 650, 1e-12));
  CHECK_THAT(of(energy.idle, Drawer::gpus), WithinRel((2 + 1 + 9 * 0.5) * 100.0, 1e-12));
}

TEST_CASE("energy by cause and by device adds up to the integral over the trace", "[analysis]") {
  for (const Variant& variant : tiny_variants(2, 4)) {
    CAPTURE(variant.name);
    const StepProgram program = build_step(variant.step.input(), Folding::automatic);
    const Trace trace = replay(program.traffic.folded.platform, program.graph);
    const Energy energy = energy_of(program, trace);
    const double all = integral_of(program.graph, trace, program.traffic.folded.lane_sizes);
    CHECK_THAT(energy.total(), WithinRel(all, 1e-9));
    CHECK_THAT(sum_of_causes(energy), WithinRel(all, 1e-9));
  }
}

TEST_CASE("folded ranks take as much energy as all of them", "[analysis]") {
  std::vector<Variant> all = tiny_variants(2, 4);
  append(all, tiny_pipelines());
  for (const Variant& variant : all) {
    CAPTURE(variant.name);
    const auto energy = [&](Folding folding) {
      const ReplayedStep step = replay_step(variant.step.input(), {.folding = folding});
      return energy_of(step.program, step.trace);
    };
    check_same(energy(Folding::automatic), energy(Folding::off));
  }
}

TEST_CASE("micro-batches that repeat themselves take as much energy as all of them", "[analysis]") {
  std::vector<Variant> all = tiny_variants(2, 4);
  append(all, tiny_pipelines());
  for (Variant& variant : all) {
    CAPTURE(variant.name);
    variant.step.job.accumulation = 128;
    const ReplayedStep few = replay_step(variant.step.input(), {});
    const ReplayedStep whole = replay_whole_step(variant.step.input(), {});
    check_same(energy_of(few.program, few.trace), energy_of(whole.program, whole.trace));
  }
}

}  // namespace stepsim
