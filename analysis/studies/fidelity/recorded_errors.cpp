#include "analysis/studies/fidelity/recorded_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

constexpr double noticed = 0.1;  // percent points: below it compilers differ

struct Figure {
  std::string_view column, what;
  double (*of)(const RowFamily&);
  bool share = false;  // percent; otherwise a count
  bool less_is_worse = false;
};
const std::array<Figure, 7> recorded_columns{{
    {"rows", "rows with a time", [](const RowFamily& f) { return static_cast<double>(f.rows); },
     false, true},
    {"median", "the median error of the step time",
     [](const RowFamily& f) { return 100 * f.median; }, true},
    {"ninth_of_ten", "the error of nine rows in ten",
     [](const RowFamily& f) { return 100 * f.p90; }, true},
    {"memory_rows", "rows with a memory",
     [](const RowFamily& f) { return static_cast<double>(f.memory_rows); }, false, true},
    {"memory_median", "the median error of the memory",
     [](const RowFamily& f) { return 100 * f.memory_median; }, true},
    {"outcomes", "rows whose outcome is known",
     [](const RowFamily& f) { return static_cast<double>(f.fits); }, false, true},
    {"outcomes_right", "outcomes that are right",
     [](const RowFamily& f) { return static_cast<double>(f.fits_right); }, false, true},
}};

std::string text_of(const Figure& figure, double value) {
  return figure.share ? fmt::format("{:.1f} %", value) : fmt::format("{:.0f}", value);
}

bool is_total(const RowFamily& family) {
  return family.name == "all";
}

// Reads the figures by family, in the order of `recorded_columns`.
std::map<std::string, std::vector<double>> read_recorded(const CsvTable& table) {
  std::vector<std::string> needed{"family"};
  for (const Figure& figure : recorded_columns) needed.emplace_back(figure.column);
  require_columns(table, needed);
  NumberReader number{table, {}};
  std::map<std::string, std::vector<double>> recorded;
  for (const CsvTable::Row& row : table.rows) {
    std::vector<double>& values = recorded[std::string(table.cell(row, "family"))];
    for (const Figure& figure : recorded_columns) values.push_back(number(row, figure.column));
  }
  if (!number.problems.empty()) throw UserError(number.problems);
  return recorded;
}

}  // namespace

std::string recorded_errors(std::span<const RowFamily> families) {
  std::string text = "family";
  for (const Figure& figure : recorded_columns) text += fmt::format(",{}", figure.column);
  text += '\n';
  for (const RowFamily& family : families) {
    if (is_total(family)) continue;
    text += family.name;
    for (const Figure& figure : recorded_columns)
      text += figure.share ? fmt::format(",{:.2f}", figure.of(family))
                           : fmt::format(",{:.0f}", figure.of(family));
    text += '\n';
  }
  return text;
}

std::vector<ErrorChange> changes_since(const CsvTable& table, std::span<const RowFamily> families) {
  std::map<std::string, std::vector<double>> recorded = read_recorded(table);
  std::vector<ErrorChange> changes;
  for (const RowFamily& family : families) {
    if (is_total(family)) continue;
    const auto place = recorded.find(family.name);
    if (place == recorded.end()) {
      changes.push_back({family.name, "the family", "not there",
                         fmt::format("{} rows", std::max(family.rows, family.fits)), false});
      continue;
    }
    for (std::size_t i = 0; i < recorded_columns.size(); ++i) {
      const double before = place->second[i], now = recorded_columns[i].of(family);
      if (std::abs(now - before) <= noticed) continue;
      changes.push_back({family.name, std::string(recorded_columns[i].what),
                         text_of(recorded_columns[i], before), text_of(recorded_columns[i], now),
                         (now < before) == recorded_columns[i].less_is_worse});
    }
    recorded.erase(place);
  }
  for (const auto& [name, values] : recorded)
    changes.push_back({name, "the family", "there", "gone", true});
  return changes;
}

}  // namespace stepsim
