// What a drawing shows is what the run holds: areas, peaks and busy times survive fewer points.
#include <cmath>
#include <numeric>

#include "analysis/memory_timeline.hpp"
#include "analysis/report/link_use.hpp"
#include "analysis/report/tracks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/tiny_run.hpp"
#include "tests/support/tiny_step.hpp"

namespace stepsim {
namespace {

// A step with thousands of operations on several streams.
Run long_run() {
  const Replayed step = play(tiny_step(Sharding::zero3, tiny_model(8)));
  return {.scenario = {},
          .platform = step.program.traffic.folded.platform,
          .graph = step.program.graph,
          .trace = step.trace,
          .lane_sizes = {},
          .constants = {},
          .summary = {}};
}

double busy(const Run& run) {
  double sum = 0;
  for (std::size_t i = 0; i < run.graph.size(); ++i) {
    const Op& op = run.graph.ops()[i];
    const double members =
        op.pattern == no_pattern
            ? 1
            : static_cast<double>(run.graph.patterns()[index(op.pattern)].members.size());
    sum += members * (run.trace.finish[i] - run.trace.start[i]);
  }
  return sum;
}

double busy(const Tracks& tracks) {
  double sum = 0;
  for (const Track& track : tracks.list)
    for (const CauseShare& part : track.shares) sum += part.seconds;
  return sum;
}

}  // namespace

TEST_CASE("an averaged curve keeps its area") {
  const Curve curve{{0, 0.1, 0.35, 0.4, 0.85}, {0, 2, 0.5, 3, 1}};
  const double whole = area(curve, 1);
  CHECK(whole == Approx(0 + 0.5 + 0.025 + 1.35 + 0.15));
  for (const std::size_t bins : {1U, 2U, 3U, 4U}) {
    const Curve fewer = averaged(curve, 1, bins);
    CHECK(fewer.times.size() == bins);
    CHECK(area(fewer, 1) == Approx(whole).epsilon(1e-12));
  }
  CHECK(averaged(curve, 1, 5).times == curve.times);
}

TEST_CASE("a short run is drawn operation by operation") {
  const Tracks tracks = tracks_of(tiny_run(), 100);
  CHECK(tracks.resolution == 0);
  CHECK(tracks.operations == 5);  // the gather stands on both ranks
  REQUIRE(tracks.list.size() == 4);
  CHECK(tracks.list[1].stream == Stream::gather);
  CHECK(tracks.list[1].spans[0].start == 2);
  CHECK(tracks.list[1].spans[0].finish == 2.5);
  CHECK(tracks.list[3].rank == 1);
  CHECK(tracks.list[3].stream == Stream::gather);
}

TEST_CASE("fewer spans hold the same operations and the same busy time") {
  const Run run = long_run();
  const Tracks all = tracks_of(run, run.graph.size() * 8);
  REQUIRE(all.spans() > 800);
  CHECK(all.resolution == 0);
  CHECK(busy(all) == Approx(busy(run)).epsilon(1e-9));
  for (const std::size_t most : {50U, 200U, 600U}) {
    const Tracks fewer = tracks_of(run, most);
    CHECK(fewer.spans() <= most);
    CHECK(fewer.operations == all.operations);
    CHECK(busy(fewer) == Approx(busy(run)).epsilon(1e-9));
    for (const Track& track : fewer.list) {
      std::uint32_t operations = 0;
      double before = 0;
      for (const Span& span : track.spans) {
        CHECK(span.start >= before);
        CHECK((span.count == 1 || span.finish - span.start <= fewer.resolution));
        double inside = 0;
        for (const CauseShare& part : track.shares_of(span)) inside += part.seconds;
        CHECK(inside <= (span.finish - span.start) * (1 + 1e-9));
        before = span.finish;
        operations += span.count;
      }
      CHECK(operations >= track.spans.size());
    }
  }
}

TEST_CASE("the area under a link's use is what went over it") {
  const Run run = tiny_run();  // 1 GB: 0.55 and twice 0.25 over 2 GB/s, 2 x 0.55 over 4 GB/s
  const auto links = link_use(run, 8);
  REQUIRE(links.size() == 2);
  CHECK(index(links[0].link) == 0);
  CHECK(links[0].mean == Approx((0.55 + 0.5) / 2 / 3));
  CHECK(links[1].mean == Approx(2 * 0.55 / 4 / 3));
  for (const LinkCurve& link : links) {
    CHECK(area(link.share, 3) == Approx(3 * link.mean));
    CHECK(link.share.values.front() == 0);
    CHECK(link.share.values.back() == 0);
  }
  CHECK(link_use(run, 1).size() == 1);
}

TEST_CASE("links are never more than full, and their use adds up") {
  const Run run = long_run();
  for (const LinkCurve& link : link_use(run, 100)) {
    CHECK(link.mean <= 1 + 1e-9);
    CHECK(area(link.share, run.trace.makespan.value) ==
          Approx(link.mean * run.trace.makespan.value).epsilon(1e-9));
  }
}

TEST_CASE("memory over time keeps its peak with any number of points") {
  const Run run = long_run();
  const double peak = peak_memory(run.graph, run.trace, 0).bytes;
  for (const std::size_t points : {3U, 10U, 100U, 1000000U}) {
    const MemoryCurves curves = memory_curves(run, 0, Pool::device, points);
    CHECK(curves.times.size() <= points);
    CHECK(*std::max_element(curves.totals.begin(), curves.totals.end()) == peak);
    for (std::size_t i = 0; i < curves.times.size(); ++i) {
      double sum = 0;
      for (const auto& level : curves.levels) sum += level[i];
      CHECK(sum == Approx(curves.totals[i]).margin(1));
    }
  }
  CHECK(memory_curves(run, 0, Pool::disk, 10).times.empty());
}

}  // namespace stepsim
