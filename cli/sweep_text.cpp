#include "cli/sweep_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/studies/sweep/sweep_reading.hpp"
#include "sim/base/json.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::size_t widest_reason = 150;  // columns of a terminal that somebody made wide

// Of a key only what follows the last dot, unless two keys end alike.
std::vector<std::string> short_names(const std::vector<std::string>& keys) {
  const auto last = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  std::vector<std::string> names;
  for (const std::string& key : keys) {
    const auto alike = std::count_if(keys.begin(), keys.end(), [&](const std::string& other) {
      return last(other) == last(key);
    });
    names.push_back(alike > 1 ? key : last(key));
  }
  return names;
}

// Why a point is worth a look.
std::string marks_of(const SweepReport& report, std::size_t row) {
  std::string marks;
  const auto add = [&](const std::optional<std::size_t>& which, std::string_view word) {
    if (which == row) marks += fmt::format("{}{}", marks.empty() ? "" : ", ", word);
  };
  add(report.fastest, "fastest");
  add(report.cheapest, "cheapest");
  for (const Scaling& scaling : report.scalings)
    if (scaling.knee && scaling.points[*scaling.knee].row == row)
      marks += marks.empty() ? "knee" : ", knee";
  const bool on_front =
      std::find(report.front.begin(), report.front.end(), row) != report.front.end();
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
struct Shown {
  std::string (*text)(double);
  std::string_view title, metric;
};

std::string plain(double v) {
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

constexpr std::array training_columns{
    Shown{plain, "GPUs", "gpus"},
    Shown{time, "step time", "step_time"},
    Shown{rate_text, "tok/s", "tokens_per_second"},
    Shown{whole, "tok/s/GPU", "tokens_per_second_per_gpu"},
    Shown{hours, "GPU-h/Mtok", "gpu_time_per_million_tokens"},
    Shown{bytes, "memory", "peak_memory"},
};
constexpr std::array grpo_columns{
    Shown{plain, "GPUs", "gpus"},
    Shown{plain, "learners", "learners"},
    Shown{plain, "engines", "engines"},
    Shown{plain, "idle", "stranded_gpus"},
    Shown{time, "step time", "step_time"},
    Shown{time, "wait", "wait_time"},
    Shown{time, "train", "training_time"},
    Shown{time, "sync", "sync_time"},
    Shown{short_number, "resp/s", "responses_per_second"},
    Shown{rate_text, "tok/s", "tokens_per_second"},
    Shown{hours, "GPU-h/Mtok", "gpu_time_per_million_tokens"},
    Shown{short_number, "seq/engine", "running_sequences"},
    Shown{short_number, "stale", "mean_staleness"},
    Shown{bytes, "train mem", "learner_memory_training"},
    Shown{bytes, "sync mem", "learner_memory_sync"},
    Shown{host_bytes, "host mem", "host_memory"},
    Shown{time, "start-up", "start_up"},
};

std::span<const Shown> columns_for(const SweepTable& table) {
  const bool grpo = std::any_of(table.rows.begin(), table.rows.end(), [](const SweepRow& row) {
    return row.outcome.of("learners").has_value();
  });
  return grpo ? std::span<const Shown>(grpo_columns) : std::span<const Shown>(training_columns);
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
  TextTable text{short_names(table.keys), std::vector(table.keys.size(), Align::right), {}};
  const bool scaled = !report.scalings.empty();
  const auto column = [&](std::string_view name, Align align) {
    text.header.emplace_back(name);
    text.align.push_back(align);
  };
  const std::span<const Shown> columns = columns_for(table);
  const bool drawn = std::any_of(table.rows.begin(), table.rows.end(), [](const SweepRow& row) {
    return row.outcome.of("step_time_low").has_value();
  });
  for (const Shown& shown : columns) {
    column(shown.title, Align::right);
    if (drawn && shown.metric == "step_time") column("8 of 10 draws", Align::right);
  }
  if (scaled) column("efficiency", Align::right);
  column("bottleneck", Align::left);
  column("", Align::left);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const SweepRow& row = table.rows[i];
    std::vector<std::string> cells = row.values;
    for (const Shown& shown : columns) {
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

void write_point(JsonWriter& json, const SweepTable& table, const SweepReport& report,
                 std::size_t i) {
  const SweepRow& row = table.rows[i];
  json.begin_object();
  for (std::size_t k = 0; k < table.keys.size(); ++k) {
    const auto number = parse_quantity(row.values[k]);
    if (number && number->dimension == Dimension::ratio)
      json.member(table.keys[k], number->value);
    else
      json.member(table.keys[k], row.values[k]);
  }
  json.member("feasible", row.outcome.feasible).key("reason");
  row.outcome.feasible ? json.null() : json.value(row.outcome.reason);
  json.key("bottleneck");
  row.outcome.bottleneck.empty() ? json.null() : json.value(row.outcome.bottleneck);
  for (std::size_t m = 0; m < all_metrics().size(); ++m)
    if (all_metrics()[m].name != "fits")
      json.member(column_name(all_metrics()[m]), row.outcome.figures[m]);
  json.key("efficiency");
  double efficiency = NAN;
  for (const Scaling& scaling : report.scalings)
    for (const ScalingPoint& point : scaling.points)
      if (point.row == i) efficiency = point.efficiency;
  json.value(efficiency).end_object();
}

void write_scaling(JsonWriter& json, const Scaling& scaling) {
  json.begin_object()
      .member("name", scaling.name)
      .member("fixed_batch", scaling.fixed_batch)
      .key("knee_gpus");
  scaling.knee ? json.value(scaling.points[*scaling.knee].gpus) : json.null();
  json.key("points").begin_array();
  for (const ScalingPoint& point : scaling.points)
    json.begin_object()
        .member("point", static_cast<double>(point.row))
        .member("gpus", point.gpus)
        .member("efficiency", point.efficiency)
        .member("marginal", point.marginal)
        .end_object();
  json.end_array().end_object();
}

}  // namespace

std::string sweep_text(const SweepTable& table, const SweepReport& report,
                       std::span<const WhatIf> changes) {
  std::string text =
      fmt::format("{}\n{} points, {} of them can run\n\n{}", table.title, table.rows.size(),
                  report.feasible, render(point_table(table, report)));
  if (report.feasible == 0) return text + "\nno point can run\n";
  text += '\n';
  for (const std::string& line : points_worth_having(table, report)) text += line + '\n';
  if (!report.scalings.empty()) text += '\n';
  for (const std::string& line : scaling_lines(report)) text += line + '\n';
  if (changes.empty()) return text;
  text += "\nwhat would make the fastest faster\n";
  for (const WhatIf& each : changes)
    text += fmt::format("  {:>+6.1f} %  {}\n", 100 * each.gain, each.change);
  return text;
}

std::string sweep_json(const SweepTable& table, const SweepReport& report,
                       std::span<const WhatIf> changes) {
  JsonWriter json;
  json.begin_object().member("scenario", table.title).key("points").begin_array();
  for (std::size_t i = 0; i < table.rows.size(); ++i) write_point(json, table, report, i);
  json.end_array();
  const auto point = [&](std::string_view name, const std::optional<std::size_t>& row) {
    json.key(name);
    row ? json.value(static_cast<double>(*row)) : json.null();
  };
  point("fastest", report.fastest);
  point("cheapest", report.cheapest);
  point("smallest", report.smallest);
  json.key("front").begin_array();
  for (const std::size_t row : report.front) json.value(static_cast<double>(row));
  json.end_array().key("scalings").begin_array();
  for (const Scaling& scaling : report.scalings) write_scaling(json, scaling);
  json.end_array().key("what_ifs").begin_array();
  for (const WhatIf& each : changes)
    json.begin_object()
        .member("change", each.change)
        .member("gain", each.gain)
        .member("tokens_per_second", each.outcome.of("tokens_per_second").value_or(0))
        .end_object();
  json.end_array().end_object();
  return json.take();
}

}  // namespace stepsim
