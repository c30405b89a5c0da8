#include "cli/sweep_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "cli/engine_options.hpp"
#include "cli/next_steps_text.hpp"
#include "cli/source_options.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::size_t widest_reason = 150;  // columns of a terminal that somebody made wide

// Returns of each key what follows the last dot, unless two keys end alike.
std::vector<std::string> short_names(const std::vector<std::string>& keys) {
  const auto last = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  std::vector<std::string> names;
  for (const std::string& key : keys) {
    const auto alike = std::ranges::count_if(
        keys, [&](const std::string& other) { return last(other) == last(key); });
    names.push_back(alike > 1 ? key : last(key));
  }
  return names;
}

// Why a point is worth a look.
std::string marks_of(const SweepReport& report, std::size_t row) {
  if (report.alike) return "";
  std::string marks;
  const auto add = [&](const std::optional<std::size_t>& which, std::string_view word) {
    if (which == row) marks += fmt::format("{}{}", marks.empty() ? "" : ", ", word);
  };
  add(report.fastest, "fastest");
  add(report.cheapest, "cheapest");
  for (const Scaling& scaling : report.scalings)
    if (scaling.knee && scaling.points[*scaling.knee].row == row)
      marks += marks.empty() ? "knee" : ", knee";
  const bool on_front = holds(report.front, row);
  if (on_front && marks.empty()) marks = "front";
  return marks;
}

std::string efficiency_of(const SweepReport& report, std::size_t row) {
  for (const Scaling& scaling : report.scalings)
    for (const ScalingPoint& point : scaling.points)
      if (point.row == row) return percent(point.efficiency, 0);
  return "";
}

// A column of the table of points.
struct ShownMetric {
  std::string (*text)(double);
  std::string_view title, metric;
};

std::string as_it_is(double v) {
  return fmt::format("{}", v);
}
std::string whole(double v) {
  return fmt::format("{:.0f}", v);
}
std::string short_number(double v) {
  return fmt::format("{:.3g}", v);
}
std::string time(double v) {
  return to_text(Seconds{v});
}
std::string bytes(double v) {
  return to_text(Bytes{v});
}
std::string host_bytes(double v) {
  return v > 0 ? bytes(v) : "none";
}
std::string hours(double v) {
  return short_number(v / 3600);
}

// A table has those of these columns that its points have.
constexpr std::array price_columns{
    ShownMetric{short_number, "a GPU-h", "price"},
    ShownMetric{short_number, "a Mtok", "cost_per_million_tokens"},
    ShownMetric{short_number, "the job", "cost"},
    ShownMetric{short_number, "tokens for the budget", "budget_tokens"},
};
constexpr std::array training_columns{
    ShownMetric{as_it_is, "GPUs", "gpus"},
    ShownMetric{time, "step time", "step_time"},
    ShownMetric{rate_text, "tok/s", "tokens_per_second"},
    ShownMetric{whole, "tok/s/GPU", "tokens_per_second_per_gpu"},
    ShownMetric{hours, "GPU-h/Mtok", "gpu_time_per_million_tokens"},
    ShownMetric{bytes, "memory", "peak_memory"},
};
constexpr std::array grpo_columns{
    ShownMetric{as_it_is, "GPUs", "gpus"},
    ShownMetric{as_it_is, "learners", "learners"},
    ShownMetric{as_it_is, "engines", "engines"},
    ShownMetric{as_it_is, "idle", "stranded_gpus"},
    ShownMetric{time, "step time", "step_time"},
    ShownMetric{time, "wait", "wait_time"},
    ShownMetric{time, "train", "training_time"},
    ShownMetric{time, "sync", "sync_time"},
    ShownMetric{short_number, "resp/s", "responses_per_second"},
    ShownMetric{rate_text, "tok/s", "tokens_per_second"},
    ShownMetric{hours, "GPU-h/Mtok", "gpu_time_per_million_tokens"},
    ShownMetric{short_number, "seq/engine", "running_sequences"},
    ShownMetric{short_number, "stale", "mean_staleness"},
    ShownMetric{bytes, "train mem", "learner_memory_training"},
    ShownMetric{bytes, "sync mem", "learner_memory_sync"},
    ShownMetric{host_bytes, "host mem", "host_memory"},
    ShownMetric{time, "start-up", "start_up"},
};

std::vector<ShownMetric> columns_for(const SweepTable& table) {
  const auto some = [&](std::string_view metric) {
    return std::ranges::any_of(
        table.rows, [&](const SweepRow& row) { return row.outcome.of(metric).has_value(); });
  };
  std::vector<ShownMetric> columns(training_columns.begin(), training_columns.end());
  if (some("learners")) columns.assign(grpo_columns.begin(), grpo_columns.end());
  for (const ShownMetric& shown : price_columns)
    if (some(shown.metric)) columns.push_back(shown);
  return columns;
}

std::string bottleneck_text(const Outcome& outcome) {
  std::string name = outcome.bottleneck;
  for (const PhaseSpec& phase : phase_specs())
    if (phase.text == outcome.bottleneck) name = phase.key;
  const auto share = outcome.of("share." + name);
  return outcome.bottleneck + (share ? " " + percent(*share, 0) : "");
}

std::string interval_text(const Outcome& outcome) {
  const auto low = outcome.of("step_time_low"), high = outcome.of("step_time_high");
  return low && high ? fmt::format("{} to {}", time(*low), time(*high)) : "-";
}

TextTable point_table(const SweepTable& table, const SweepReport& report) {
  TextTable text{
      mapped(short_names(table.keys), [](const std::string& name) { return " " + name; })};
  const bool scaled = !report.scalings.empty();
  const std::vector<ShownMetric> columns = columns_for(table);
  const bool drawn = std::ranges::any_of(
      table.rows, [](const SweepRow& row) { return row.outcome.of("step_time_low").has_value(); });
  for (const ShownMetric& shown : columns) {
    text.columns.push_back(fmt::format(" {}", shown.title));
    if (drawn && shown.metric == "step_time") text.columns.emplace_back(" 8 of 10 draws");
  }
  if (scaled) text.columns.emplace_back(" efficiency");
  append(text.columns, {"bottleneck", ""});
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const SweepRow& row = table.rows[i];
    std::vector<std::string> cells = row.values;
    for (const ShownMetric& shown : columns) {
      const auto value = row.outcome.of(shown.metric);
      cells.push_back(value ? shown.text(*value) : "-");
      if (drawn && shown.metric == "step_time") cells.push_back(interval_text(row.outcome));
    }
    if (scaled) cells.push_back(efficiency_of(report, i));
    cells.push_back(bottleneck_text(row.outcome));
    cells.push_back(row.outcome.feasible ? marks_of(report, i)
                                         : row.outcome.reason.substr(0, widest_reason));
    text.rows.push_back(std::move(cells));
  }
  return text;
}

// Returns what was varied; a number where it is one.
Record setting_record(const std::string& key, const std::string& value) {
  constexpr std::string_view what = "one key for each that was varied";
  const auto number = parse_quantity(value);
  if (number && number->dimension == Dimension::ratio) return {key, what, number->value};
  return {key, what, value};
}

Records point_records(const SweepTable& table, const SweepReport& report, std::size_t i) {
  const SweepRow& row = table.rows[i];
  Records records;
  for (std::size_t k = 0; k < table.keys.size(); ++k)
    records.push_back(setting_record(table.keys[k], row.values[k]));
  std::optional<double> efficiency;
  for (const Scaling& scaling : report.scalings)
    for (const ScalingPoint& point : scaling.points)
      if (point.row == i) efficiency = point.efficiency;
  return joined({records,
                 outcome_records(row.outcome),
                 {{"efficiency", "throughput per GPU over that of the smallest machine", efficiency,
                   Measure::share}}});
}

Records scaling_records(const Scaling& scaling) {
  const auto knee = scaling.knee ? std::optional(scaling.points[*scaling.knee].gpus) : std::nullopt;
  const auto point = [](const ScalingPoint& each) -> Records {
    return {{"point", "its place among the points", each.row},
            {"gpus", "of the whole cluster", each.gpus},
            {"efficiency", "throughput per GPU over that of the smallest machine", each.efficiency,
             Measure::share},
            {"marginal", "what the last growth brought", each.marginal, Measure::share}};
  };
  return {{"name", "the other settings", scaling.name},
          {"fixed_batch", "strong scaling", scaling.fixed_batch},
          {"knee_gpus", "no larger machine brings half of what it could", knee},
          {"points", "by machine size", list_of(scaling.points, point)}};
}

std::string nearest_text(const SweepTable& table, const SweepAdvice& advice) {
  if (!advice.nearest) return "";
  return fmt::format("nearest is {}\n{}", settings_text(table, table.rows[advice.nearest->row]),
                     fitting_text(advice.nearest->fitting));
}

// Says what the table comes to; `taken` stands behind the points.
std::string worth_text(const SweepTable& table, const SweepReport& report,
                       const SweepAdvice& advice, const std::string& taken = "") {
  if (report.feasible == 0) return "no point can run\n" + taken + nearest_text(table, advice);
  std::string text;
  for (const std::string& line : points_worth_having(table, report)) text += line + '\n';
  text += taken;
  if (!report.scalings.empty()) text += '\n';
  for (const std::string& line : scaling_lines(report)) text += line + '\n';
  if (advice.faster.empty()) return text;
  text += fmt::format("\nwhat would make {} faster\n", report.alike ? "them" : "the fastest");
  for (const WhatIf& each : advice.faster)
    text += fmt::format("  {:>+6.1f} %  {}\n", 100 * each.gain, each.change);
  return text;
}

}  // namespace

std::string sweep_text(const SweepTable& table, const SweepReport& report,
                       const SweepAdvice& advice) {
  const std::string head = fmt::format("{}\n{} points, {} of them can run\n", table.title,
                                       table.rows.size(), report.feasible);
  return head + '\n' + render(point_table(table, report)) + '\n' +
         worth_text(table, report, advice);
}

std::string sweep_brief(const SweepTable& table, const SweepReport& report,
                        const SweepAdvice& advice, const SweepNotes& notes) {
  return fmt::format("{} points, {} of them can run\n", table.rows.size(), report.feasible) +
         worth_text(table, report, advice, notes.in_brief);
}

Records outcome_records(const Outcome& outcome) {
  const auto text = [](bool there, const std::string& word) {
    return there ? std::optional(word) : std::nullopt;
  };
  Records records{
      {"feasible", "it can run", outcome.feasible},
      {"reason", "why not", text(!outcome.feasible, outcome.reason)},
      {"bottleneck", "what takes most", text(!outcome.bottleneck.empty(), outcome.bottleneck)}};
  for (const NamedMetric& metric : all_metrics())
    if (metric.name != "fits")
      records.emplace_back(
          column_name(metric), metric.meaning, outcome.of(metric.name),
          metric.dimension == Dimension::ratio ? Measure::figure : measure_of(metric.dimension));
  return records;
}

Records sweep_records(const SweepTable& table, const SweepReport& report, const SweepAdvice& advice,
                      const SweepNotes& notes, const std::optional<PlayedBy>& played) {
  std::vector<std::size_t> places(table.rows.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto point = [&](std::size_t i) { return point_records(table, report, i); };
  const auto change = [](const WhatIf& each) -> Records {
    return {{"change", "of the fastest point", each.change},
            {"gain", "of tokens per second", each.gain, Measure::error},
            {"tokens_per_second", "with it", each.outcome.of("tokens_per_second").value_or(0)}};
  };
  const auto place = [](std::size_t row) { return row; };
  const auto unless_alike = [&](const std::optional<std::size_t>& row) {
    return report.alike ? std::nullopt : row;
  };
  return {
      {"scenario", "what was varied",
       Records{{"title", "its name", table.title},
               {"source", "the path or name that was given", table.source},
               {"set", "in all points, as KEY=VALUE", setting_list(table.fixed)},
               {"resolved", "as read, before anything is set", table.scenario}}},
      assumption_record(notes.assumptions),
      {"notes", "what was read and makes no difference, and what is unusual", list_of(notes.notes)},
      {"points", "one for each combination", list_of(places, point)},
      {"alike", "all points that can run have the same figures: none is best", report.alike},
      {"fastest", "point with the most tokens a second", unless_alike(report.fastest)},
      {"cheapest", "point with the least money per token, or without prices GPU time",
       unless_alike(report.cheapest)},
      {"smallest", "point that can run on the fewest GPUs", report.smallest},
      {"front", "points that no other beats in both", list_of(report.front, place)},
      {"scalings", "points that differ in the machine's size",
       list_of(report.scalings, scaling_records)},
      {"what_ifs", "changes that gain most", list_of(advice.faster, change)},
      parts_if("nearest", "where no point can run: the one that lacks least memory", advice.nearest,
               [](const NearestRun& nearest) -> Records {
                 return joined(
                     {{{"point", "its place", nearest.row}}, fitting_records(nearest.fitting)});
               }),
      played_record(played)};
}

Records sweep_sample() {
  SweepTable table;
  table.keys = {"KEY"};
  table.rows.push_back({0, {"0"}, impossible("")});
  SweepReport report;
  report.scalings.emplace_back().points.emplace_back();
  SweepAdvice advice{{{"", 0, impossible("")}}, NearestRun{}};
  advice.nearest->fitting.single.emplace_back();
  return sweep_records(table, report, advice, {"", "", {Assumption{}}, {""}},
                       PlayedBy{.difference = 0.0, .energy_difference = 0.0});
}

}  // namespace stepsim
