// What `unexplained` ranges over: wide enough that intervals hold eight of ten steps, not wider.
#include "analysis/studies/fidelity/stretch_fit.hpp"

#include <algorithm>

#include "analysis/studies/fidelity/calibration_files.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/whole_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

using namespace stepsim;

namespace {

constexpr std::uint32_t samples = 16;

// Predicted `error` off; draws in luck of its own, times something between the ends.
PredictedRow row_of(double error, double low, double high, std::uint64_t seed) {
  PredictedRow row;
  row.timed = true;
  row.step_error = error;
  for (std::uint32_t sample = 0; sample < samples; ++sample) {
    const double between = low + (high - low) * sample / (samples - 1.0);
    row.drawn.push_back(
        {{.seed = seed, .sample = sample, .of = samples}, (1 + error) * between - 1});
  }
  return row;
}

// Errors evenly over -20 to +20 %, if both are one.
std::vector<PredictedRow> rows_of(double below, double above, double low, double high) {
  std::vector<PredictedRow> rows;
  for (int i = -50; i <= 50; ++i)
    rows.push_back(row_of(0.004 * i * (i < 0 ? below : above), low, high,
                          static_cast<std::uint64_t>(100 + i)));
  return rows;
}

std::vector<StretchRow> weighed(const std::vector<PredictedRow>& rows) {
  std::vector<StretchRow> result;
  for (const PredictedRow& row : rows) result.push_back({&row, 1});
  return result;
}

double share_held(const std::vector<PredictedRow>& rows, const Range& stretch) {
  double held = 0;
  for (const PredictedRow& row : rows) {
    const Range interval = stretched_interval(row, stretch);
    held += interval.low <= 0 && interval.high >= 0 ? 1 : 0;
  }
  return held / static_cast<double>(rows.size());
}

}  // namespace

TEST_CASE("where no constant has a range, unexplained holds eight of ten steps", "[analysis]") {
  const std::vector<PredictedRow> rows = rows_of(1, 1, 1, 1);
  const Range stretch = fit_stretch(weighed(rows));
  CHECK(share_held(rows, stretch) == Approx(0.8).margin(0.03));
  // An interval goes from the first tenth of the draws to the last: a bit narrower than the range.
  CHECK(stretch.low < 1 / 1.16);
  CHECK(stretch.low > 1 / 1.35);
  CHECK(stretch.high > 1 / 0.84);
  CHECK(stretch.high < 1 / 0.7);
}

TEST_CASE("where all steps take longer than predicted, only the high end moves", "[analysis]") {
  const std::vector<PredictedRow> rows = rows_of(1, 0, 1, 1);
  const Range stretch = fit_stretch(weighed(rows));
  CHECK(stretch.low == 1);
  CHECK(stretch.high > 1.05);
}

TEST_CASE("what the ranges of other constants hold is not counted twice", "[analysis]") {
  const std::vector<PredictedRow> wide = rows_of(1, 1, 0.7, 1.4), some = rows_of(1, 1, 0.9, 1.1);
  const Range none = fit_stretch(weighed(wide));
  CHECK(none.low == 1);
  CHECK(none.high == 1);
  const Range alone = fit_stretch(weighed(rows_of(1, 1, 1, 1))), less = fit_stretch(weighed(some));
  CHECK(less.high / less.low < alone.high / alone.low);
  CHECK(share_held(some, less) == Approx(0.8).margin(0.05));
}

TEST_CASE("a fitted value takes its place in the file, and every other line stays", "[analysis]") {
  CalibrationPlan plan;
  plan.stacks = {"megatron"};
  plan.source = "a table";
  Calibration fitted;
  fitted.rows = fitted.runs = 20;
  fitted.samples = samples;
  fitted.unexplained = {0.83, 1.27};
  fitted.constants.push_back({"kernels.memory", Dimension::ratio, 1, 0.77, 0.6, 0.9});
  const Catalogue& data = source_data();
  const std::string path = file_of(data, stack_shelf, "megatron");
  const std::string text = fitted_stack_file(data, "megatron", plan, fitted);
  const Document document = parse_document(text, path);
  CHECK(document.root().constant<Ratio>("unexplained").value.value == 1);
  CHECK(text.find("low: 0.83, high: 1.27, grade: fitted") != std::string::npos);
  CHECK(text.find("  memory: {value: 0.77, low: 0.6, high: 0.9") != std::string::npos);
  // Of the lines with a comment none is lost.
  const std::string old = read_file(path);
  CHECK(std::count(text.begin(), text.end(), '#') == std::count(old.begin(), old.end(), '#'));
}
