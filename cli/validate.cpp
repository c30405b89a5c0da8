// `validate` predicts measured runs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "analysis/studies/fidelity/validation.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

// Folders give their files in order of name.
std::vector<std::string> files_in(const std::string& place) {
  std::error_code failed;
  if (!fs::is_directory(place, failed)) return {place};
  std::vector<std::string> inside;
  for (const auto& entry : fs::directory_iterator(place, failed))
    if (entry.path().extension() == ".yaml") inside.push_back(entry.path().string());
  if (inside.empty()) throw UserError({{place, 0, "", "holds no scenario (*.yaml)"}});
  std::ranges::sort(inside);
  return inside;
}

std::vector<std::string> scenario_files(const CommandLine& line,
                                        const std::vector<std::string>& words) {
  std::vector<std::string> files;
  std::vector<std::string> places = words;
  if (places.empty()) places = line.data.places("scenarios/seeds");
  for (const std::string& place : places) append(files, files_in(place));
  return files;
}

// Loads all files first, so that what is wrong with any of them is said before the first is
// predicted.
std::vector<NamedScenario> load_all(const CommandLine& line,
                                    const std::vector<std::string>& files) {
  return mapped(files, [&](const std::string& file) -> NamedScenario {
    return {fs::path(file).stem().string(), load_scenario(line.data, file), file};
  });
}

std::string figure_text(Dimension dimension, double value) {
  if (dimension != Dimension::ratio) return to_text(value, dimension);
  return value < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

std::string range_text(Dimension dimension, const Range& range) {
  const std::string low = figure_text(dimension, range.low);
  return range.low == range.high ? low
                                 : fmt::format("{} - {}", low, figure_text(dimension, range.high));
}

std::string band_text(const ValidatedFigure& row) {
  if (!row.band) return "";
  return fmt::format("{:.3g} %: {}", 100 * *row.band, row.inside() ? "met" : "missed");
}

bool has_intervals(const Validation& validation) {
  return std::ranges::any_of(validation.figures,
                             [](const ValidatedFigure& row) { return row.interval.has_value(); });
}

TextTable figure_table(const Validation& validation, std::string_view against) {
  TextTable table{{"family", "run", "metric", " " + std::string(against), " predicted", " error"}};
  const bool bands = std::ranges::any_of(
      validation.figures, [](const ValidatedFigure& row) { return row.band.has_value(); });
  if (bands) table.columns.emplace_back("asked for");
  const bool drawn = has_intervals(validation);
  if (drawn) append(table.columns, {" interval", "holds it"});
  for (const ValidatedFigure& row : validation.figures) {
    const MetricSpec& spec = spec_of(row.metric);
    table.rows.push_back({row.family, row.id, std::string(spec.name),
                          range_text(spec.dimension, row.observed),
                          row.predicted ? figure_text(spec.dimension, *row.predicted) : "-",
                          row.predicted ? signed_percent(row.error) : "-"});
    if (bands) table.rows.back().push_back(band_text(row));
    if (!drawn) continue;
    table.rows.back().push_back(row.interval ? range_text(spec.dimension, *row.interval) : "-");
    table.rows.back().emplace_back(!row.interval ? "" : row.held() ? "yes" : "no");
  }
  return table;
}

TextTable verdict_table(const Validation& validation, std::string_view against) {
  TextTable table{{"family", "run", std::string(against), "predicted", " needs", " usable", ""}};
  for (const ValidatedVerdict& row : validation.verdicts)
    table.rows.push_back({row.family, row.id, row.fits ? "fits" : "oom",
                          std::string(to_text(row.predicted)), to_text(Bytes{row.needed}),
                          to_text(Bytes{row.capacity}), row.right() ? "right" : "wrong"});
  return table;
}

RecordList family_list(const Validation& validation) {
  return list_of(validation.families, [](const FamilyErrors& family) -> Records {
    return {{"name", "family", family.name},
            {"rows", "rows", family.rows},
            {"median_abs_error", "median |error|", family.median_abs_error, Measure::share},
            {"p90_abs_error", "90 %", family.p90_abs_error, Measure::share},
            {"signed_mean", "signed mean", family.signed_mean, Measure::error}};
  });
}

std::string text_of(const Validation& validation, std::string_view against) {
  std::string text = render(figure_table(validation, against));
  text += "\n" + render(verdict_table(validation, against));
  const auto right = std::ranges::count_if(validation.verdicts, &ValidatedVerdict::right);
  text += "\n" +
          render(table_of(family_list(validation).items,
                          "name=family; rows=rows; median_abs_error=median |error|; "
                          "p90_abs_error=90 %; signed_mean=signed mean")) +
          fmt::format("\n{} of {} memory verdicts are right\n", right, validation.verdicts.size());
  const auto asked = std::ranges::count_if(
      validation.figures, [](const ValidatedFigure& row) { return row.band.has_value(); });
  const auto met = std::ranges::count_if(validation.figures, &ValidatedFigure::inside);
  if (asked > 0)
    text += fmt::format("{} of {} figures are as near as their files ask for\n", met, asked);
  const auto held = std::ranges::count_if(validation.figures, &ValidatedFigure::held);
  if (has_intervals(validation))
    text +=
        fmt::format("{} of {} figures are in their intervals\n", held, validation.figures.size());
  return text;
}

Records validated_records(const ValidatedFigure& row) {
  const MetricSpec& spec = spec_of(row.metric);
  const auto inside = row.band ? std::optional(row.inside()) : std::nullopt;
  const auto held = row.interval ? std::optional(row.held()) : std::nullopt;
  const auto error = row.predicted ? std::optional(row.error) : std::nullopt;
  // A range where it is one.
  Record measured("measured", "a figure or a range, SI; of a verdict: fits or oom", row.observed);
  if (row.observed.low == row.observed.high)
    measured = Record("measured", measured.label, row.observed.low);
  return {{"id", "run", row.id},
          {"family", "family", row.family},
          {"metric", "metric", spec.name},
          {"predicted", "a figure, SI; of a verdict: fits or oom", row.predicted},
          measured,
          {"error", "outside of the range, over its nearer end", error, Measure::error},
          {"band", "error that its file asks for", row.band, Measure::share},
          {"inside_band", "it is met", inside},
          {"interval", "8 of 10 draws", row.interval},
          {"inside_interval", "that holds the measured one", held}};
}

Records validated_verdict(const ValidatedVerdict& row) {
  return {
      {"id", "run", row.id},
      {"family", "family", row.family},
      {"metric", "metric", "verdict"},
      {"predicted", "a figure, SI; of a verdict: fits or oom",
       row.predicted == Fit::oom ? "oom" : "fits"},
      {"measured", "a figure or a range, SI; of a verdict: fits or oom", row.fits ? "fits" : "oom"},
      {"error", "of a verdict: none", std::optional<double>()}};
}

Records scenario_records(std::string_view id, const Records& asked) {
  return {{"id", "run", id}, {"asked", "what was read", asked}};
}

Records records_of(const Validation& validation, const RecordList& scenarios) {
  RecordList rows = list_of(validation.figures, validated_records);
  append(rows.items, list_of(validation.verdicts, validated_verdict).items);
  return {{"rows", "figures, then verdicts", rows},
          {"families", "errors of the figures by family", family_list(validation)},
          {"scenarios", "that were given", scenarios}};
}

}  // namespace

Records validate_sample() {
  Validation validation;
  validation.figures.push_back({"", "", Metric::step_time, {0, 1}, {}, 0, {}, {}});
  validation.verdicts.push_back({"", "", true, Fit::fits, 0, 0});
  validation.families.emplace_back();
  return records_of(validation, list_of(std::array{asked_sample()}, [](const Records& each) {
                      return scenario_records("", each);
                    }));
}

int validate_command(const CommandLine& line) {
  const auto options = parse("validate", line.words);
  if (!options) return exit_code::yes;
  const bool estimates = options->has("estimates");
  const auto scenarios = load_all(line, scenario_files(line, options->words));
  const auto samples = count_of(*options, "samples", 0, 4096);
  const Validation validation =
      validate(scenarios, estimates ? Against::estimated : Against::measured,
               {.data = line.data, .samples = samples.value_or(0)},
               samples ? progress_bar("replays") : Progress{});
  const std::string_view block = estimates ? "estimated" : "measured";
  if (validation.figures.empty() && validation.verdicts.empty())
    throw UserError(fmt::format("none of {} scenarios has a {}: block", scenarios.size(), block));
  if (options->has("json"))
    print_result(validate_kind, {},
                 records_of(validation, list_of(scenarios, [](const NamedScenario& each) {
                              return scenario_records(each.id,
                                                      asked_records(each.scenario, {each.file}));
                            })));
  else
    say("{}", text_of(validation, block));
  return exit_code::yes;
}

}  // namespace stepsim
