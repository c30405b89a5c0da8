#include "analysis/studies/fidelity/row_validation.hpp"

#include <signal.h>

#include "analysis/studies/fidelity/row_tasks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

using namespace stepsim;

namespace {

PredictedRow timed(const std::string& family, double error) {
  PredictedRow row;
  row.id = family + std::to_string(error);
  row.family = family;
  row.timed = true;
  row.step_error = error;
  row.fit = Fit::fits;
  return row;
}

}  // namespace

TEST_CASE("families are summed up by the errors of the step time", "[analysis]") {
  std::vector<PredictedRow> rows{timed("a", 0.1), timed("b", -0.4), timed("a", -0.3),
                                 timed("a", 0.2)};
  rows[1].measured_fits = false;
  rows[3].interval = Range{-0.1, 0.3};
  rows[0].interval = Range{0.05, 0.2};
  rows.push_back(timed("a", 9));
  rows.back().missing = {"the hardware"};
  const std::vector<RowFamily> families = families_of(rows);
  REQUIRE(families.size() == 3);
  CHECK(families[0].name == "a");
  CHECK(families[0].rows == 3);
  CHECK(families[0].median == Approx(0.2));
  CHECK(families[0].p90 == Approx(0.28));
  CHECK(families[0].signed_mean == Approx(0.0).margin(1e-12));
  CHECK(families[0].worst_error == Approx(-0.3));
  CHECK(families[0].intervals == 2);
  CHECK(families[0].inside == 1);
  CHECK(families[1].fits_right == 0);
  CHECK(families[2].name == "all");
  CHECK(families[2].rows == 4);
}

TEST_CASE("figures of memory are summed up by what they count, bounds apart", "[analysis]") {
  const auto sized = [](MemoryKind counts, double error, bool bound) {
    PredictedRow row;
    row.id = "r" + std::to_string(error);
    row.family = "a";
    row.memory_error = error;
    row.memory_counts = counts;
    row.memory_bound = bound;
    return row;
  };
  std::vector<PredictedRow> rows{sized(MemoryKind::device, -0.5, false),
                                 sized(MemoryKind::allocated, 0.01, false),
                                 sized(MemoryKind::allocated, -0.03, false),
                                 sized(MemoryKind::allocated, 0, true), timed("a", 0.5)};
  const std::vector<MemoryErrors> kinds = memory_errors(rows);
  REQUIRE(kinds.size() == 3);
  CHECK(kinds[0].counts == "allocated");
  CHECK(kinds[0].rows == 2);
  CHECK(kinds[0].median == Approx(0.02));
  CHECK(kinds[0].signed_mean == Approx(-0.01));
  CHECK(kinds[0].worst_error == Approx(-0.03));
  CHECK(kinds[1].counts == "device");
  CHECK(kinds[2].counts == "at most");
  CHECK(kinds[2].median == 0);
  CHECK(families_of(rows).back().memory_rows == 3);
}

TEST_CASE("a row whose worker crashes is not one that lacks data", "[analysis]") {
  const auto task = [](bool crashes, bool draws_crash) {
    RowTask<int> row;
    row.ask = [=](const MaybeDraw& draw) {
      if (draw ? draws_crash : crashes) ::raise(SIGKILL);
      return 1;
    };
    row.compare = [](const int&, PredictedRow& result) { result.timed = true; };
    return row;
  };
  const std::vector<RowTask<int>> tasks{task(false, false), task(true, false), task(false, true)};
  const std::vector<PredictedRow> rows = predict_all(tasks, 2, 1);
  CHECK(rows[0].crashes.empty());
  CHECK_FALSE(rows[1].predicted());
  CHECK(rows[1].crashes.size() == 1);
  CHECK(rows[2].predicted());
  CHECK(rows[2].crashes.size() == 2);
  CHECK(rows[2].crashes.front() == "a worker ended without an answer (signal 9: Killed)");
}

TEST_CASE("one rotten row spoils no table", "[analysis]") {
  const CsvTable table = parse_csv(
      "id,model,stack,cluster.node,cluster.gpus_per_node,job.sequence,strategy.zero,step_s\n"
      "good,qwen3-0.6b,fsdp2-eager,h100-8,8,1024,fsdp,0.1\n"
      "huge,qwen3-0.6b,fsdp2-eager,h100-8,8,1e9,fsdp,0.1\n"
      "alone,qwen3-0.6b,fsdp2-eager,h100-8,1,1024,0,0.1\n",
      "rows.csv");
  const std::vector<StepRow> rows = step_rows(source_data(), table);
  const std::vector<PredictedRow> predicted =
      predict_rows({.data = source_data(), .rows = rows, .samples = 0, .seed = 1});
  REQUIRE(predicted.size() == 3);
  CHECK(predicted[0].predicted());
  CHECK(predicted[0].figures.front().predicted > 0);
  CHECK_FALSE(predicted[1].predicted());
  CHECK_FALSE(predicted[1].missing.front().empty());
  CHECK(predicted[2].predicted());
}
