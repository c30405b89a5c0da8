#include "cli/row_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/studies/fidelity/recorded_errors.hpp"
#include "analysis/studies/fidelity/rl_rows.hpp"
#include "analysis/studies/fidelity/row_validation.hpp"
#include "analysis/studies/fidelity/series.hpp"
#include "cli/outputs.hpp"
#include "cli/row_export.hpp"
#include "cli/row_reading.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/table.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, "; "));
}

TextTable figure_table(const std::vector<PredictedRow>& rows) {
  TextTable table{{"family", "row", "metric", "measured", "predicted", "error"},
                  {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right},
                  {}};
  for (const PredictedRow& row : rows)
    for (const RowFigure& figure : row.figures)
      table.rows.push_back(
          {row.family, row.id, figure.metric, fmt::format("{:.4g}", figure.measured),
           fmt::format("{:.4g}", figure.predicted), signed_percent(figure.error())});
  return table;
}

TextTable missing_table(const std::vector<PredictedRow>& rows) {
  TextTable table{{"not predicted", "what is missing"}, {Align::left, Align::left}, {}};
  for (const PredictedRow& row : rows)
    if (!row.predicted() && row.crashes.empty())
      table.rows.push_back({row.id, joined(row.missing)});
  return table;
}

// Rows whose workers crashed, and why: no lack of data, but a bug or too little memory.
TextTable crash_table(const std::vector<PredictedRow>& rows) {
  TextTable table{{"no answer", "workers", "why"}, {Align::left, Align::right, Align::left}, {}};
  for (const PredictedRow& row : rows)
    if (!row.crashes.empty())
      table.rows.push_back({row.id, fmt::format("{}", row.crashes.size()), row.crashes.front()});
  return table;
}

// What rows leave open and how it was taken, the most frequent first.
TextTable assumed_table(const std::vector<PredictedRow>& rows) {
  struct Taken {
    std::string what, first;
    std::size_t rows = 0;
  };
  std::vector<Taken> all;
  for (const PredictedRow& row : rows) {
    if (!row.predicted()) continue;
    for (const std::string& what : row.assumed) {
      auto place =
          std::find_if(all.begin(), all.end(), [&](const Taken& t) { return t.what == what; });
      if (place == all.end()) place = all.insert(all.end(), {what, row.id, 0});
      place->rows += 1;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Taken& a, const Taken& b) { return a.rows > b.rows; });
  TextTable table{{"assumed", "rows", "first row"}, {Align::left, Align::right, Align::left}, {}};
  for (const Taken& taken : all)
    table.rows.push_back({taken.what, fmt::format("{}", taken.rows), taken.first});
  return table;
}

TextTable family_table(const std::vector<RowFamily>& families, bool intervals) {
  TextTable table{{"family", "rows", "median |error|", "90 %", "signed mean", "worst", "",
                   "memory rows", "median |error|", "fits right"},
                  {Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::left, Align::right, Align::right, Align::right},
                  {}};
  if (intervals) {
    table.header.emplace_back("inside 80 %");
    table.align.push_back(Align::right);
  }
  for (const RowFamily& f : families) {
    std::vector<std::string> row{f.name, fmt::format("{}", f.rows)};
    const bool timed = f.rows > 0, sized = f.memory_rows > 0;
    row.push_back(timed ? percent(f.median) : "-");
    row.push_back(timed ? percent(f.p90) : "-");
    row.push_back(timed ? signed_percent(f.signed_mean) : "-");
    row.push_back(timed ? signed_percent(f.worst_error) : "-");
    row.push_back(f.worst);
    row.push_back(sized ? fmt::format("{}", f.memory_rows) : "-");
    row.push_back(sized ? percent(f.memory_median) : "-");
    row.push_back(fmt::format("{} of {}", f.fits_right, f.fits));
    if (intervals) row.push_back(fmt::format("{} of {}", f.inside, f.intervals));
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable series_table(const std::vector<AxisErrors>& errors) {
  TextTable table{{"from one row to the next along", "steps", "median |error|", "90 %"},
                  {Align::left, Align::right, Align::right, Align::right},
                  {}};
  for (const AxisErrors& axis : errors)
    if (axis.steps > 0)
      table.rows.push_back({std::string(axis_names[static_cast<std::size_t>(axis.axis)]),
                            fmt::format("{}", axis.steps), percent(axis.median),
                            percent(axis.p90)});
  return table;
}

std::string text_of(const std::vector<PredictedRow>& rows, const std::vector<AxisErrors>& series,
                    bool intervals) {
  std::string text = render(figure_table(rows));
  if (const TextTable missing = missing_table(rows); !missing.rows.empty())
    text += "\n" + render(missing);
  if (const TextTable crashes = crash_table(rows); !crashes.rows.empty())
    text += "\n" + render(crashes);
  if (const TextTable assumed = assumed_table(rows); !assumed.rows.empty())
    text += "\n" + render(assumed);
  text += "\n" + render(family_table(families_of(rows), intervals));
  if (const TextTable table = series_table(series); !table.rows.empty())
    text += "\n" + render(table);
  const auto predicted = std::count_if(rows.begin(), rows.end(),
                                       [](const PredictedRow& row) { return row.predicted(); });
  if (predicted == 0)
    return text + fmt::format("\n0 of {} rows are predicted: nothing was compared\n", rows.size());
  return text + fmt::format(
                    "\n{} of {} rows are predicted; errors are those of the time of a step or of a "
                    "served load, negative when it is predicted too short\n",
                    predicted, rows.size());
}

void write_texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_figures(JsonWriter& json, const PredictedRow& row) {
  for (const RowFigure& figure : row.figures) {
    json.begin_object()
        .member("id", row.id)
        .member("family", row.family)
        .member("metric", figure.metric)
        .member("predicted", figure.predicted)
        .member("measured", figure.measured)
        .member("error", figure.error());
    if (row.interval && figure.metric == "step_s")
      json.key("interval")
          .begin_array()
          .value(figure.measured * (1 + row.interval->low))
          .value(figure.measured * (1 + row.interval->high))
          .end_array();
    json.end_object();
  }
  json.begin_object()
      .member("id", row.id)
      .member("family", row.family)
      .member("metric", "verdict")
      .member("predicted", row.fit == Fit::oom ? "oom" : "fits")
      .member("measured", row.measured_fits ? "fits" : "oom")
      .member("judged", row.judged)
      .member("needed_bytes", row.needed)
      .member("capacity_bytes", row.capacity)
      .key("error")
      .null()
      .end_object();
}

void write_family(JsonWriter& json, const RowFamily& family) {
  json.begin_object()
      .member("name", family.name)
      .member("rows", static_cast<double>(family.rows))
      .member("median_abs_error", family.median)
      .member("p90_abs_error", family.p90)
      .member("signed_mean", family.signed_mean)
      .member("worst", family.worst)
      .member("worst_error", family.worst_error)
      .member("memory_rows", static_cast<double>(family.memory_rows))
      .member("memory_median_abs_error", family.memory_median)
      .member("verdicts", static_cast<double>(family.fits))
      .member("verdicts_right", static_cast<double>(family.fits_right))
      .member("intervals", static_cast<double>(family.intervals))
      .member("inside_interval", static_cast<double>(family.inside))
      .end_object();
}

std::string json_of(const std::vector<PredictedRow>& rows, const std::vector<AxisErrors>& series) {
  JsonWriter json;
  json.begin_object().key("rows").begin_array();
  for (const PredictedRow& row : rows)
    if (row.predicted()) write_figures(json, row);
  json.end_array().key("not_predicted").begin_array();
  for (const PredictedRow& row : rows) {
    if (row.predicted() || !row.crashes.empty()) continue;
    json.begin_object().member("id", row.id).member("family", row.family);
    write_texts(json, "missing", row.missing);
    json.end_object();
  }
  json.end_array().key("no_answer").begin_array();
  for (const PredictedRow& row : rows) {
    if (row.crashes.empty()) continue;
    json.begin_object().member("id", row.id).member("family", row.family);
    write_texts(json, "crashes", row.crashes);
    json.end_object();
  }
  json.end_array().key("assumed").begin_array();
  for (const PredictedRow& row : rows) {
    if (!row.predicted() || row.assumed.empty()) continue;
    json.begin_object().member("id", row.id);
    write_texts(json, "assumed", row.assumed);
    json.end_object();
  }
  json.end_array().key("families").begin_array();
  for (const RowFamily& family : families_of(rows)) write_family(json, family);
  json.end_array().key("series").begin_array();
  for (const AxisErrors& axis : series)
    json.begin_object()
        .member("along", axis_names[static_cast<std::size_t>(axis.axis)])
        .member("steps", static_cast<double>(axis.steps))
        .member("median_abs_error", axis.median)
        .member("p90_abs_error", axis.p90)
        .end_object();
  json.end_array().end_object();
  return json.take();
}

// The answer is no when a family got worse.
int compare_with(const CsvTable& recorded, const std::vector<RowFamily>& families) {
  const std::vector<ErrorChange> changes = changes_since(recorded, families);
  TextTable table{{"since " + recorded.file, "", "was", "is", ""},
                  {Align::left, Align::left, Align::right, Align::right, Align::left},
                  {}};
  bool worse = false;
  for (const ErrorChange& change : changes) {
    worse = worse || change.worse;
    table.rows.push_back(
        {change.family, change.what, change.before, change.now, change.worse ? "worse" : "better"});
  }
  fmt::print("\n{}", changes.empty() ? fmt::format("nothing changed since {}\n", recorded.file)
                                     : render(table));
  if (!changes.empty())
    fmt::print("\nif that is meant: stepsim validate --rows ... --record {}\n", recorded.file);
  return worse ? exit_code::no : exit_code::yes;
}

}  // namespace

int validate_row_tables(const CommandLine& line, const RowTablesQuestion& question) {
  std::optional<CsvTable> recorded;  // read first: nothing is predicted in vain
  if (!question.recorded.empty()) recorded = read_csv(question.recorded);
  if (!question.record.empty()) require_no_input(question.record, question.files);
  const RowTables tables = read_row_tables(question.files);
  for (const std::string& note : tables.notes) fmt::print(stderr, "note: {}\n", note);
  std::vector<PredictedRow> predicted = predict_rows({.data = line.data,
                                                      .rows = tables.steps,
                                                      .samples = question.samples,
                                                      .seed = 1,
                                                      .stack = {}});
  const std::vector<AxisErrors> series = errors_by_axis(series_steps(tables.steps, predicted));
  const RowSampling sampling{question.samples, 1};
  for (PredictedRow& row : predict_rows(line.data, tables.grpo, sampling))
    predicted.push_back(std::move(row));
  for (PredictedRow& row : predict_rows(line.data, tables.engines, sampling))
    predicted.push_back(std::move(row));
  fmt::print("{}", question.json ? json_of(predicted, series)
                                 : text_of(predicted, series, question.samples > 0));
  if (!question.scenarios.empty()) {
    const std::size_t files = export_rows(question.scenarios, predicted);
    fmt::print(stderr, "note: {} scenarios are in {}\n", files, question.scenarios);
  }
  // Errors without these rows are none that anybody should keep or compare with.
  if (std::any_of(predicted.begin(), predicted.end(),
                  [](const PredictedRow& row) { return !row.crashes.empty(); }))
    return exit_code::bug;
  if (!question.record.empty())
    write_file(question.record, recorded_errors(families_of(predicted)));
  if (!recorded) return exit_code::yes;
  const std::size_t all = recorded->rows.size();
  std::erase_if(recorded->rows, [&](const CsvTable::Row& row) {
    return !holds_family(tables, recorded->cell(row, "family"));
  });
  const int answer = compare_with(*recorded, families_of(predicted));
  if (const std::size_t others = all - recorded->rows.size(); others > 0)
    fmt::print("families of tables that were not given, not compared: {}\n", others);
  return answer;
}

}  // namespace stepsim
