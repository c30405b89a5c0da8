#include "sim/run_columns.hpp"

#include <array>
#include <limits>
#include <map>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/tiny_run.hpp"

using namespace stepsim;

namespace {

struct Columns {
  std::map<std::string, Column> by_path;
  std::vector<std::string> summary;
};

Columns columns_of(const Run& run) {
  Columns columns;
  write_columns(run, [&](const Column& column) {
    const bool first = columns.by_path.emplace(column.path, column).second;
    CHECK(first);
    if (column.path.starts_with("/summary/")) columns.summary.push_back(column.path.substr(9));
  });
  return columns;
}

Run run_of(const Columns& columns) {
  return read_columns({[&](Column& column) {
                         const Column& from = columns.by_path.at(column.path);
                         CHECK(from.values.index() == column.values.index());
                         CHECK(from.place == column.place);
                         CHECK(std::ranges::equal(from.words, column.words));
                         column.values = from.values;
                         column.unit = from.unit;
                       },
                       [&](const std::string&) { return columns.summary; }});
}

bool same(const Op& a, const Op& b) {
  const auto all = [](const Op& op) {
    return std::tuple(op.kind, op.stream, op.phase, op.cause, op.rank, op.layer, op.micro_batch,
                      op.name, op.pattern, op.seconds, op.bytes, op.flops);
  };
  return all(a) == all(b);
}

bool same(const MemoryEffect& a, const MemoryEffect& b) {
  const auto all = [](const MemoryEffect& effect) {
    return std::tuple(effect.op, effect.at_start, effect.pool, effect.rank, effect.tensor_class,
                      effect.bytes);
  };
  return all(a) == all(b);
}

template <class T>
const std::vector<T>& values(const Columns& columns, const std::string& path) {
  return std::get<std::vector<T>>(columns.by_path.at(path).values);
}

}  // namespace

TEST_CASE("a run made of its own columns is the same run", "[sim]") {
  const Run run = tiny_run(), read = run_of(columns_of(run));
  CHECK(read.scenario == run.scenario);
  CHECK(read.platform.links == run.platform.links);
  CHECK(read.platform.devices == run.platform.devices);
  CHECK(std::ranges::equal(read.graph.names(), run.graph.names()));
  CHECK(std::ranges::equal(read.graph.patterns(), run.graph.patterns()));
  CHECK(std::ranges::equal(read.graph.edges(), run.graph.edges()));
  CHECK(std::ranges::equal(read.graph.offsets(), run.graph.offsets()));
  REQUIRE(read.graph.size() == run.graph.size());
  for (std::size_t i = 0; i < run.graph.size(); ++i) {
    CAPTURE(i);
    CHECK(same(read.graph.ops()[i], run.graph.ops()[i]));
  }
  CHECK(read.trace.ready == run.trace.ready);
  CHECK(read.trace.start == run.trace.start);
  CHECK(read.trace.finish == run.trace.finish);
  CHECK(read.trace.makespan == run.trace.makespan);
  CHECK(read.trace.activities == run.trace.activities);
  REQUIRE(read.trace.links.size() == run.trace.links.size());
  for (std::size_t i = 0; i < run.trace.links.size(); ++i) {
    CHECK(read.trace.links[i].bytes == run.trace.links[i].bytes);
    CHECK(read.trace.links[i].busy == run.trace.links[i].busy);
  }
  CHECK(read.lane_sizes == run.lane_sizes);
}

TEST_CASE("constants and summary keep values, units, grades and order", "[sim]") {
  const Run run = tiny_run(), read = run_of(columns_of(run));
  REQUIRE(read.constants.size() == run.constants.size());
  for (std::size_t i = 0; i < run.constants.size(); ++i) {
    const NamedConstant &a = read.constants[i], &b = run.constants[i];
    CHECK(std::tie(a.name, a.dimension, a.value, a.low, a.high, a.grade, a.source) ==
          std::tie(b.name, b.dimension, b.value, b.low, b.high, b.grade, b.source));
  }
  REQUIRE(read.summary.size() == run.summary.size());
  for (std::size_t i = 0; i < run.summary.size(); ++i) {
    const Scalar &a = read.summary[i], &b = run.summary[i];
    CHECK(std::tie(a.name, a.value, a.dimension) == std::tie(b.name, b.value, b.dimension));
  }
}

TEST_CASE("memory effects come in order of time, and equal times in order of emission", "[sim]") {
  const Run run = tiny_run();
  const Columns columns = columns_of(run);
  // By hand, from tiny_run: starts at 0 (twice), the gather from 2 to 2.5, the last finish at 3.
  CHECK(values<double>(columns, "/memory/time") == std::vector<double>{0, 0, 2, 2.5, 3});
  const std::vector<std::size_t> emitted{2, 4, 0, 1, 3};
  const Run read = run_of(columns);
  REQUIRE(read.graph.memory().size() == emitted.size());
  for (std::size_t i = 0; i < emitted.size(); ++i)
    CHECK(same(read.graph.memory()[i], run.graph.memory()[emitted[i]]));
}

TEST_CASE("lane sizes are written for every rank, and read as none when all are one", "[sim]") {
  Run run = tiny_run();
  run.lane_sizes.clear();
  const Columns columns = columns_of(run);
  CHECK(values<std::uint32_t>(columns, "lane_sizes") == std::vector<std::uint32_t>{1, 1});
  CHECK(run_of(columns).lane_sizes.empty());
}

TEST_CASE("the digest of a scenario is its 64-bit FNV-1a", "[sim]") {
  Run run = tiny_run();
  const auto digest = [&](const char* scenario) {
    run.scenario = scenario;
    return values<std::string>(columns_of(run), "scenario_digest").front();
  };
  // Test vectors of the authors of the function.
  CHECK(digest("") == "cbf29ce484222325");
  CHECK(digest("a") == "af63dc4c8601ec8c");
  CHECK(digest("foobar") == "85944171f73967e8");
}

TEST_CASE("an empty run is a run", "[sim]") {
  const Run read = run_of(columns_of(Run{}));
  CHECK(read.graph.size() == 0);
  CHECK(read.platform.devices.empty());
  CHECK(read.summary.empty());
}

TEST_CASE("a run that contradicts itself is not written", "[sim]") {
  const auto refused = [](auto&& spoil) {
    Run run = tiny_run();
    spoil(run);
    CHECK_THROWS_AS(write_columns(run, [](const Column&) {}), std::logic_error);
  };
  refused([](Run& run) { run.trace.start.pop_back(); });
  refused([](Run& run) { run.trace.finish[0] = std::numeric_limits<double>::quiet_NaN(); });
  refused([](Run& run) { run.trace.links.pop_back(); });
  refused([](Run& run) { run.lane_sizes.push_back(1); });
  refused([](Run& run) { run.lane_sizes[0] = 0; });
  refused([](Run& run) { run.summary.front().name = "step time"; });
  refused([](Run& run) { run.summary.front().name = ""; });
  refused([](Run& run) { run.graph.allocate({.op = OpId{99}}); });
  refused([](Run& run) { run.graph.add({.name = NameId{99}}, {}), run.trace.start.push_back(3); });
  refused([](Run& run) { run.platform.devices[0].engines.push_back(LinkId{99}); });
}

TEST_CASE("words are numbered in bytes", "[sim]") {
  constexpr std::array<std::string_view, 2> words{"compute", "copy"};
  const auto image_with = [&](Values values) {
    return image_of_columns({}, [&](const ColumnSink& sink) {
      sink({"/kind", ColumnKind::column, values, words});
    });
  };
  CHECK(is_column_file(image_with(std::vector<std::uint8_t>{1})));
  CHECK_THROWS_WITH(image_with(std::vector<std::int32_t>{1}), "words are numbered in bytes");
}

TEST_CASE("a run does not hold more than any machine", "[sim]") {
  for (const double bytes : {1e308, -1e19, std::numeric_limits<double>::quiet_NaN()}) {
    Columns bad = columns_of(tiny_run());
    std::get<std::vector<double>>(bad.by_path.at("/memory/delta").values).front() = bytes;
    CHECK_THROWS_WITH(run_of(bad), "a memory effect is larger than any machine");
  }
}

TEST_CASE("columns with wrong values make no run, or a run that can be written", "[sim]") {
  const Columns good = columns_of(tiny_run());
  const auto spoil = [](auto& list, std::size_t row, int how) {
    using T = typename std::remove_cvref_t<decltype(list)>::value_type;
    if (how == 0 && !list.empty()) list.pop_back();
    if (how == 1) list.emplace_back();
    if (how == 2) list.clear();
    if (row >= list.size()) return;
    if (how == 3) list[row] = T{};
    if constexpr (std::is_arithmetic_v<T>) {
      if (how == 4) list[row] = std::numeric_limits<T>::max();
      if (how == 5) list[row] = static_cast<T>(list[row] + 1);
      if (how == 6) list[row] = static_cast<T>(-1);
      if (how == 7) list[row] = std::numeric_limits<T>::quiet_NaN();
    }
  };
  int refused = 0;
  for (const auto& [path, column] : good.by_path) {
    for (int how = 0; how < 8; ++how) {
      for (std::size_t row = 0; row < 5; ++row) {
        CAPTURE(path, how, row);
        Columns bad = good;
        std::visit([&](auto& list) { spoil(list, row, how); }, bad.by_path.at(path).values);
        try {
          const Run run = run_of(bad);
          CHECK_NOTHROW(write_columns(run, [](const Column&) {}));
        } catch (const std::logic_error&) {
          ++refused;
        }
      }
    }
  }
  // All ways of cutting, growing or emptying, at least, of the 40 columns with an exact length.
  CHECK(refused > 3 * 5 * 40);
}
