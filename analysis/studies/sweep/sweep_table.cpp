#include "analysis/studies/sweep/sweep_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <stdexcept>

#include "sim/base/csv.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/whole_file.hpp"
#include "sim/run_file.hpp"

namespace stepsim {
namespace {

constexpr std::uint32_t sweep_schema_version = 2;
constexpr std::array<std::string_view, 2> groups{"settings", "points"};

using Texts = std::vector<std::string>;
using Numbers = std::vector<double>;

// Returns the metrics that some row knows; `fits` is said by `feasible`.
std::vector<std::size_t> known_metrics(const SweepTable& table) {
  std::vector<std::size_t> known;
  for (std::size_t m = 0; m < all_metrics().size(); ++m) {
    const bool some = std::ranges::any_of(
        table.rows, [&](const SweepRow& row) { return !std::isnan(row.outcome.figures[m]); });
    if (some && all_metrics()[m].name != "fits") known.push_back(m);
  }
  return known;
}

template <class Values, class Get>
Values gathered(const SweepTable& table, const Get& get) {
  Values values;
  values.reserve(table.rows.size());
  for (const SweepRow& row : table.rows) values.push_back(get(row));
  return values;
}

// Writes "key=value" line by line: values are one line each.
std::string text_of(const std::vector<Setting>& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += fmt::format("{}={}\n", key, value);
  return text;
}

std::vector<Setting> settings_in(const std::string& text) {
  std::vector<Setting> settings;
  for (const std::string_view line : lines_in(text)) {
    const std::size_t equals = line.find('=');
    settings.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return settings;
}

void write_columns(const SweepTable& table, const ColumnSink& sink) {
  sink({"schema_version", ColumnKind::attribute, std::vector<std::uint32_t>{sweep_schema_version}});
  sink({"stepsim_version", ColumnKind::attribute, Texts{std::string(stepsim_version)}});
  sink({"digest", ColumnKind::attribute, Texts{table.digest}});
  sink({"title", ColumnKind::attribute, Texts{table.title}});
  sink({"points", ColumnKind::attribute, std::vector<std::uint64_t>{table.points}});
  sink({"/scenario", ColumnKind::single_value, Texts{table.scenario}});
  sink({"/source", ColumnKind::single_value, Texts{table.source}});
  sink({"/set", ColumnKind::single_value, Texts{text_of(table.fixed)}});
  for (std::size_t k = 0; k < table.keys.size(); ++k)
    sink({"/settings/" + table.keys[k], ColumnKind::column,
          gathered<Texts>(table, [&](const SweepRow& row) { return row.values[k]; })});
  sink({"/points/index", ColumnKind::column,
        gathered<std::vector<std::uint64_t>>(table, [](const SweepRow& r) { return r.index; })});
  sink({"/points/feasible", ColumnKind::column,
        gathered<std::vector<std::uint8_t>>(
            table, [](const SweepRow& r) { return std::uint8_t{r.outcome.feasible}; })});
  sink({"/points/reason", ColumnKind::column,
        gathered<Texts>(table, [](const SweepRow& row) { return row.outcome.reason; })});
  sink({"/points/bottleneck", ColumnKind::column,
        gathered<Texts>(table, [](const SweepRow& row) { return row.outcome.bottleneck; })});
  for (const std::size_t m : known_metrics(table))
    sink({"/points/" + all_metrics()[m].name,
          ColumnKind::column,
          gathered<Numbers>(table, [&](const SweepRow& row) { return row.outcome.figures[m]; }),
          {},
          std::string(si_unit(all_metrics()[m].dimension))});
}

template <class Values>
Values column(const ColumnReader& reader, const std::string& path,
              ColumnKind place = ColumnKind::column) {
  Column read{path, place, Values{}};
  reader.fill(read);
  return std::get<Values>(read.values);
}

void read_points(const ColumnReader& reader, SweepTable& table) {
  const auto index = column<std::vector<std::uint64_t>>(reader, "/points/index");
  const auto feasible = column<std::vector<std::uint8_t>>(reader, "/points/feasible");
  const auto reason = column<Texts>(reader, "/points/reason");
  const auto bottleneck = column<Texts>(reader, "/points/bottleneck");
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < index.size(); ++i)
    table.rows.push_back({index[i],
                          SweepValues(table.keys.size()),
                          {feasible.at(i) != 0, reason.at(i), bottleneck.at(i),
                           Numbers(all_metrics().size(), unknown)}});
  for (std::size_t k = 0; k < table.keys.size(); ++k) {
    const auto values = column<Texts>(reader, "/settings/" + table.keys[k]);
    for (std::size_t i = 0; i < index.size(); ++i) table.rows[i].values[k] = values.at(i);
  }
  for (const std::string& name : reader.list("/points")) {
    const auto metric = find_metric(name);
    if (!metric) continue;
    const auto values = column<Numbers>(reader, "/points/" + name);
    for (std::size_t i = 0; i < index.size(); ++i)
      table.rows[i].outcome.figures[*metric] = values.at(i);
  }
  for (SweepRow& row : table.rows)
    row.outcome.figures[*find_metric("fits")] = row.outcome.feasible ? 1 : 0;
}

}  // namespace

std::string csv_of(const SweepTable& table) {
  const std::vector<std::size_t> metrics = known_metrics(table);
  std::vector<std::string> columns = table.keys;
  for (const std::string_view name : {"feasible", "reason", "bottleneck"})
    columns.emplace_back(name);
  for (const std::size_t m : metrics) columns.push_back(column_name(all_metrics()[m]));
  std::vector<std::vector<std::string>> rows;
  for (const SweepRow& row : table.rows) {
    std::vector<std::string>& cells = rows.emplace_back(row.values);
    cells.emplace_back(row.outcome.feasible ? "true" : "false");
    cells.push_back(row.outcome.reason);
    cells.push_back(row.outcome.bottleneck);
    for (const std::size_t m : metrics) {
      const double figure = row.outcome.figures[m];
      cells.push_back(std::isnan(figure) ? "" : fmt::format("{}", figure));
    }
  }
  return csv_text(columns, rows);
}

void write_sweep(const std::string& path, const SweepTable& table) {
  write_file(path,
             image_of_columns(groups, [&](const ColumnSink& sink) { write_columns(table, sink); }));
}

bool holds_sweep(const std::string& path) {
  if (!is_file(path)) return false;
  std::string image = read_file(path);
  if (!is_column_file(image)) return false;
  try {
    return stored_in(ColumnReader(std::move(image))) == Stored::sweep;
  } catch (const std::runtime_error&) {  // damaged
    return false;
  }
}

SweepTable read_sweep(const std::string& path) {
  std::string image = read_file(path);
  if (!is_column_file(image)) fail(path, "is no sweep: not an HDF5 file");
  try {
    const ColumnReader reader(std::move(image));
    SweepTable table;
    require_stored(reader, path, Stored::sweep, sweep_schema_version);
    table.digest = column<Texts>(reader, "digest", ColumnKind::attribute).at(0);
    table.title = column<Texts>(reader, "title", ColumnKind::attribute).at(0);
    table.points =
        column<std::vector<std::uint64_t>>(reader, "points", ColumnKind::attribute).at(0);
    table.scenario = column<Texts>(reader, "/scenario", ColumnKind::single_value).at(0);
    table.source = column<Texts>(reader, "/source", ColumnKind::single_value).at(0);
    table.fixed = settings_in(column<Texts>(reader, "/set", ColumnKind::single_value).at(0));
    table.keys = reader.list("/settings");
    read_points(reader, table);
    return table;
  } catch (const UserError&) {
    throw;
  } catch (const std::bad_alloc&) {  // no damage of the file
    throw;
  } catch (const std::exception& error) {
    fail(path, fmt::format("is damaged or no sweep: {}", error.what()));
  }
}

SweepTable merge_shards(std::span<const std::string> paths) {
  SweepTable whole;
  std::map<std::size_t, const std::string*> owner;  // of each point
  for (const std::string& path : paths) {
    SweepTable shard = read_sweep(path);
    if (&path == &paths.front()) {
      whole = shard;
      whole.rows.clear();
    }
    if (shard.digest != whole.digest)
      fail(path, fmt::format("belongs to another sweep than {}", paths.front()));
    for (SweepRow& row : shard.rows) {
      if (row.index >= whole.points) fail(path, fmt::format("has a point {} too many", row.index));
      const auto [other, is_new] = owner.emplace(row.index, &path);
      if (!is_new)
        fail(path, fmt::format("has point {}, which {} has as well", row.index, *other->second));
      whole.rows.push_back(std::move(row));
    }
  }
  if (whole.rows.size() != whole.points) {
    std::size_t hole = 0;
    while (owner.contains(hole)) ++hole;
    throw UserError(fmt::format("{} of {} points are missing, point {} first: name every shard",
                                whole.points - whole.rows.size(), whole.points, hole));
  }
  std::ranges::sort(whole.rows, {}, &SweepRow::index);
  return whole;
}

}  // namespace stepsim
