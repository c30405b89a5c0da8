// What a sweep says as a whole, against laws of scaling that are known in closed form; and what is
// left of a sweep on disk.
#include "analysis/studies/sweep/sweep_report.hpp"

#include <limits>

#include "analysis/studies/sweep/sweep.hpp"
#include "analysis/studies/sweep/sweep_journal.hpp"
#include "analysis/studies/sweep/sweep_reading.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

void put(Outcome& outcome, std::string_view metric, double value) {
  outcome.figures[*find_metric(metric)] = value;
}

Outcome outcome(double gpus, double speed, double work) {
  Outcome made = impossible("");
  made.feasible = true;
  made.bottleneck = "compute";
  put(made, "fits", 1);
  put(made, "gpus", gpus);
  put(made, "tokens_per_second", speed);
  put(made, "tokens_per_step", work);
  put(made, "gpu_time_per_million_tokens", gpus / speed * 1e6);
  return made;
}

// Amdahl: a tenth of the work of one node is done once, however many there are.
SweepTable amdahl(double serial) {
  SweepTable table{"a job", "name: a job\n", "0123", {"cluster.nodes", "way"}, 0, {}};
  for (const int nodes : {1, 2, 4, 8, 16, 32}) {
    const double speed = 100 / (serial + (1 - serial) / nodes);
    table.rows.push_back(
        {table.rows.size(), {std::to_string(nodes), "a"}, outcome(8 * nodes, speed, 1000)});
  }
  table.points = table.rows.size();
  return table;
}

}  // namespace

TEST_CASE("efficiency is Amdahl's, and the knee is where half of a growth is lost", "[sweep]") {
  const double serial = 0.1;
  const SweepReport report = report_of(amdahl(serial));
  REQUIRE(report.scalings.size() == 1);
  const Scaling& scaling = report.scalings.front();
  CHECK(scaling.name == "way a");
  CHECK(scaling.fixed_batch);
  for (const ScalingPoint& point : scaling.points) {
    const double nodes = point.gpus / 8;
    CHECK(point.efficiency == Approx(1 / (serial * nodes + 1 - serial)));
  }
  // From N to 2 N nodes the speed grows by (1 - s) / (1 - s + 2 N s): half of what it could until
  // 2 N s = 1 - s, that is N = 4.5.
  REQUIRE(scaling.knee);
  CHECK(scaling.points[*scaling.knee].gpus == 8 * 8);
  CHECK(scaling.points[*scaling.knee].marginal == Approx((1 - serial) / (1 - serial + 8 * serial)));
}

TEST_CASE("a machine that scales has no knee, and one that does not has it at once", "[sweep]") {
  CHECK_FALSE(report_of(amdahl(0)).scalings.front().knee);
  CHECK(report_of(amdahl(1)).scalings.front().knee == 0u);
}

TEST_CASE("what moves with the number of nodes belongs to the size of the machine", "[sweep]") {
  SweepTable table = amdahl(0.1);
  table.keys = {"cluster.nodes", "job.gradient_accumulation", "way"};
  std::vector<SweepRow> other;
  for (SweepRow& row : table.rows) {
    row.values = {row.values[0], std::to_string(32 / std::stoi(row.values[0])), "a"};
    other.push_back(row);
    other.back().values[2] = "b";
  }
  table.rows.insert(table.rows.end(), other.begin(), other.end());
  const auto& scalings = report_of(table).scalings;
  REQUIRE(scalings.size() == 2);
  CHECK(scalings[0].name == "way a");
  CHECK(scalings[1].name == "way b");
  CHECK(scalings[0].points.size() == 6);
  // Not so for a key that has several values at one size.
  table.rows[0].values[1] = "7";
  CHECK(report_of(table).scalings.empty());
}

TEST_CASE("a batch that grows with the machine is weak scaling", "[sweep]") {
  SweepTable table = amdahl(0.1);
  for (SweepRow& row : table.rows)
    put(row.outcome, "tokens_per_step", 125 * *row.outcome.of("gpus"));
  CHECK_FALSE(report_of(table).scalings.front().fixed_batch);
}

TEST_CASE("the front holds what nothing beats in both speed and cost", "[sweep]") {
  SweepTable table{"", "", "", {"way"}, 5, {}};
  const auto add = [&](double gpus, double speed) {
    table.rows.push_back({table.rows.size(), {"w"}, outcome(gpus, speed, 1)});
  };
  add(8, 100);   // cheapest
  add(16, 150);  // on the front
  add(32, 140);  // slower and dearer than the one before
  add(32, 200);  // fastest
  table.rows.push_back({4, {"w"}, impossible("no")});
  const SweepReport report = report_of(table);
  CHECK(report.feasible == 4);
  CHECK(report.fastest == 3u);
  CHECK(report.cheapest == 0u);
  CHECK(report.smallest == 0u);
  CHECK(report.front == std::vector<std::size_t>{3, 1, 0});
  CHECK(report.scalings.empty());
}

TEST_CASE("points with the same figures have no best", "[sweep]") {
  SweepTable table{"", "", "", {"way"}, 3, {}};
  for (const char* way : {"a", "b"})
    table.rows.push_back({table.rows.size(), {way}, outcome(8, 100, 1)});
  table.rows.push_back({2, {"c"}, impossible("no")});
  SweepReport report = report_of(table);
  CHECK(report.alike);
  CHECK(points_worth_having(table, report).front().starts_with("both alike: 100 tok/s"));
  table.rows[2].outcome = outcome(8, 101, 1);
  report = report_of(table);
  CHECK_FALSE(report.alike);
  CHECK(report.fastest == 2u);
}

TEST_CASE("a sweep without a point that can run has nothing to say", "[sweep]") {
  SweepTable table{"", "", "", {"cluster.nodes"}, 1, {}};
  table.rows.push_back({0, {"2"}, impossible("no")});
  const SweepReport report = report_of(table);
  CHECK(report.feasible == 0);
  CHECK_FALSE(report.fastest);
  CHECK(report.front.empty());
}

TEST_CASE("a sweep goes through its file unchanged", "[sweep]") {
  const TemporaryFolder folder;
  SweepTable table = amdahl(0.1);
  table.rows[2].outcome = impossible("does, \"not\" fit");
  write_sweep(folder.file("a.h5"), table);
  const SweepTable back = read_sweep(folder.file("a.h5"));
  write_sweep(folder.file("b.h5"), back);
  CHECK(bytes_of(folder.file("a.h5")) == bytes_of(folder.file("b.h5")));
  CHECK(csv_of(table) == csv_of(back));
  CHECK(back.keys == table.keys);
  CHECK(back.scenario == table.scenario);
}

TEST_CASE("a damaged file of a sweep is refused", "[sweep]") {
  const TemporaryFolder folder;
  write_sweep(folder.file("a.h5"), amdahl(0.1));
  const std::string whole = bytes_of(folder.file("a.h5"));
  put_bytes(folder.file("cut.h5"), whole.substr(0, whole.size() / 2));
  CHECK_THROWS_AS(read_sweep(folder.file("cut.h5")), UserError);
}

TEST_CASE("a journal keeps whole lines and drops what was cut off or altered", "[sweep]") {
  const TemporaryFolder folder;
  const std::string path = folder.file("j");
  const Outcome first = outcome(8, 100, 1), second = impossible("too large");
  {
    SweepJournal journal(path, "this one");
    journal.add(7, first);
    journal.add(2, second);
  }
  const std::string whole = bytes_of(path);
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = whole.size(); size-- > last_line;) {
    put_bytes(path, whole.substr(0, size));
    const SweepJournal journal(path, "this one");
    CHECK(journal.finished().size() == 1);
    CHECK(to_line(journal.finished().at(7)) == to_line(first));
  }
  for (std::size_t size = 0; size < whole.find('\n'); ++size) {
    put_bytes(path, whole.substr(0, size));
    CHECK(SweepJournal(path, "this one").finished().empty());
  }
  std::string altered = whole;
  altered[last_line + 3] ^= 1;
  put_bytes(path, altered);
  CHECK(SweepJournal(path, "this one").finished().size() == 1);
  put_bytes(path, whole);
  CHECK_THROWS_AS(SweepJournal(path, "another one"), UserError);
  CHECK(SweepJournal(path, "this one").finished().size() == 2);
  CHECK(bytes_of(path) == whole);
}

TEST_CASE("points share their random draws", "[sweep]") {
  const TemporaryFolder folder;
  SweepPlan plan;
  plan.scenario = "llama32-3b-sft-zero3";
  plan.axes = {parse_axis("--vary", "job.epochs=1,2")};  // makes no difference to a step
  const Draw draw{.seed = 3, .sample = 1, .of = 4};
  const auto drawn = [&](const char* epochs) {
    return load_scenario(source_data(), plan.scenario, settings_of(plan, {epochs}), draw);
  };
  const Scenario one = drawn("1"), two = drawn("2");
  REQUIRE(one.constants.size() == two.constants.size());
  for (std::size_t i = 0; i < one.constants.size(); ++i)
    CHECK(one.constants[i].value == two.constants[i].value);
}

TEST_CASE("the cores do not matter, and neither does the order in which points end", "[sweep]") {
  SweepQuestion question;
  question.data = source_data();
  question.plan.scenario = "llama32-3b-sft-zero3";
  question.plan.axes = {parse_axis("--vary", "strategy.zero=1,2,3")};
  std::vector<std::size_t> told;
  question.progress = [&](std::size_t done, std::size_t of) {
    told.push_back(done);
    CHECK(of == 3);
  };
  question.workers = 1;
  const std::string alone = csv_of(run_sweep(question));
  CHECK(told == std::vector<std::size_t>{0, 1, 2, 3});
  question.workers = 3;
  CHECK(csv_of(run_sweep(question)) == alone);
}

TEST_CASE("a shard of very many points takes no room for them", "[sweep]") {
  SweepTable table = amdahl(0.1);
  table.points = std::numeric_limits<std::uint64_t>::max();
  const TemporaryFolder folder;
  write_sweep(folder.file("part.h5"), table);
  CHECK_THROWS_WITH(merge_shards(std::vector{folder.file("part.h5")}),
                    "18446744073709551609 of 18446744073709551615 points are missing, point 6 "
                    "first: name every shard");
}

}  // namespace stepsim
