// A few micro-batches stand for all where they repeat themselves. That must never change a figure.
#include <algorithm>

#include "analysis/studies/predict/footprint.hpp"
#include "analysis/studies/predict/replayed_step.hpp"
#include "sim/base/lists.hpp"
#include "sim/engine/own/replay.hpp"
#include "sim/repetition.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_pipeline.hpp"
#include "tests/support/tiny_step.hpp"

namespace stepsim {
namespace {

void check_same(const MemoryPeak& few, const MemoryPeak& all, double step) {
  CHECK_THAT(few.bytes, WithinRel(all.bytes, 1e-9));
  CHECK(few.phase == all.phase);
  CHECK(few.name == all.name);
  CHECK(few.time < step);
  REQUIRE(few.classes.size() == all.classes.size());
  for (std::size_t i = 0; i < all.classes.size(); ++i) {
    CHECK(few.classes[i].first == all.classes[i].first);
    CHECK_THAT(few.classes[i].second, WithinRel(all.classes[i].second, 1e-9));
  }
}

void check_same(const Breakdown& few, const Breakdown& all, double step) {
  const auto seconds = [](const Breakdown& breakdown) {
    ByCause<BreakdownRow> rows{};
    for (const BreakdownRow& row : breakdown.rows) rows[index(row.cause)] = row;
    return rows;
  };
  CHECK_THAT(few.idle.value, Catch::WithinAbs(all.idle.value, 1e-9 * step));
  for (std::size_t i = 0; i < cause_count; ++i) {
    CAPTURE(to_text(static_cast<Cause>(i)));
    const BreakdownRow a = seconds(few)[i], b = seconds(all)[i];
    CHECK_THAT(a.exposed.value, Catch::WithinAbs(b.exposed.value, 1e-9 * step));
    CHECK_THAT(a.hidden.value, Catch::WithinAbs(b.hidden.value, 1e-9 * step));
  }
}

// True where micro-batches were left out.
bool same_figures(const TinyStep& step) {
  const ReplayedStep few = replay_step(step.input(), {});
  const ReplayedStep all = replay_whole_step(step.input(), {});
  const double seconds = all.trace.makespan.value;
  CHECK_THAT(few.trace.makespan.value, WithinRel(seconds, 1e-9));
  CHECK(few.operations == all.operations);
  CHECK(all.operations == all.program.graph.size());
  CHECK(few.program.resident.mapped_before_update == all.program.resident.mapped_before_update);
  const auto breakdown = [](const ReplayedStep& replayed) {
    return mean_breakdown(replayed.program.stages, replayed.program.graph, replayed.trace);
  };
  check_same(breakdown(few), breakdown(all), seconds);
  std::vector<Rank> lanes = mapped(all.program.stages, &StepStage::lane);
  if (lanes.empty()) lanes = {0};
  for (const Rank lane : lanes)
    check_same(peak_memory(few.program.graph, few.trace, lane),
               peak_memory(all.program.graph, all.trace, lane), seconds);
  const StepProgram held = step_for_memory(step.input());
  for (const Rank lane : lanes)
    CHECK_THAT(peak_memory_in_order(held.graph, lane).bytes,
               WithinRel(peak_memory_in_order(all.program.graph, lane).bytes, 1e-9));
  return few.trace.repeat.more > 0;
}

TinyStep with_batches(TinyStep step, std::int64_t batches) {
  step.job.accumulation = batches;
  return step;
}

}  // namespace

TEST_CASE("micro-batches that repeat themselves change no figure of a step", "[laws]") {
  for (const std::uint32_t nodes : {1u, 2u})
    for (const Variant& variant : tiny_variants(nodes, 4)) {
      CAPTURE(variant.name, nodes);
      CHECK(same_figures(with_batches(variant.step, 48)));
    }
}

TEST_CASE("micro-batches that repeat themselves change no figure of a pipeline", "[laws]") {
  for (const Variant& variant : tiny_pipelines()) {
    CAPTURE(variant.name);
    // Where all micro-batches go forward first nothing comes again; exchanges of both directions
    // beside gathers find no rhythm.
    const bool once = variant.name.starts_with("gpipe") ||
                      variant.name == "dualpipe over nodes, fsdp, experts exchanged";
    CHECK(same_figures(with_batches(variant.step, 128)) != once);
  }
}

TEST_CASE("steps that are too short to repeat themselves are replayed as they are", "[laws]") {
  CHECK_FALSE(same_figures(with_batches(tiny_step(Sharding::zero3), 6)));
}

TEST_CASE("a step of whose micro-batches one differs does not repeat itself", "[laws]") {
  const TinyStep step = tiny_step(Sharding::zero3);
  const auto graph = [&](std::int64_t batches) {
    return build_step(with_batches(step, batches).input(), Folding::automatic).graph;
  };
  const StepProgram program = build_step(with_batches(step, 8).input(), Folding::automatic);
  const Trace trace = replay(program.traffic.folded.platform, program.graph);
  CHECK(find_repeat(graph(7), program.graph, trace));
  // One kernel of the last but one takes longer.
  Trace late = trace;
  for (std::size_t i = 0; i < program.graph.size(); ++i)
    if (program.graph.ops()[i].micro_batch == 6 && program.graph.ops()[i].kind == OpKind::compute) {
      late.finish[i] += 1e-6;
      break;
    }
  CHECK_FALSE(find_repeat(graph(7), program.graph, late));
  CHECK_FALSE(find_repeat(graph(8), program.graph, trace));
}

}  // namespace stepsim
