#include "scenarios/read/fault_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/read/constants.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/units.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

// Reads "x0.5".
std::optional<double> factor_of(const std::string& value) {
  if (value.size() < 2 || value.front() != 'x' || !is_digit(value[1])) return std::nullopt;
  const auto parsed = parse_quantity(value.substr(1));
  if (!parsed || parsed->dimension != Dimension::ratio || !(parsed->value > 0)) return std::nullopt;
  return parsed->value;
}

std::vector<Setting> read_level(const Table& table) {
  std::vector<Setting> level;
  for (const std::string& key : table.keys()) {
    level.emplace_back(key, table.one_line(key));
    if (names_constant(key) && !factor_of(level.back().second))
      table.problem(key, fmt::format("expected a factor of the constant such as x0.5, found \"{}\"",
                                     level.back().second));
  }
  if (level.empty()) table.problem("", "sets nothing");
  return level;
}

}  // namespace

FaultKind parse_fault_kind(std::string_view text, const std::string& file,
                           const std::string& name) {
  const Document document = parse_document(text, file);
  const Table root = document.root();
  FaultKind kind;
  kind.name = name;
  kind.says = root.text("says");
  kind.prior = root.number("prior", 0, 1);
  if (const auto needs = root.table_if("needs")) {
    kind.gpus = needs->integer_or("gpus", 1, 1, 1 << 20);
    kind.nodes = needs->integer_or("nodes", 1, 1, 1 << 20);
  }
  for (const Table& level : root.tables("levels")) kind.levels.push_back(read_level(level));
  kind.spread = root.number_or("spread", healthy_spread, 0, 10);
  kind.evidence = root.texts_or("evidence");
  kind.test = root.text("test");
  kind.shows = root.text("shows");
  kind.cure = root.text("cure");
  document.finish();
  return kind;
}

std::vector<FaultKind> fault_kinds(const Catalogue& data) {
  return mapped(names_on(data, fault_shelf), [&](const std::string& name) {
    const std::string file = file_of(data, fault_shelf, name);
    return parse_fault_kind(read_text(file), file, name);
  });
}

std::vector<Setting> settings_of_level(const std::vector<Setting>& level,
                                       const Scenario& scenario) {
  std::vector<Setting> settings;
  for (const auto& [key, value] : level) {
    if (!names_constant(key)) {
      settings.emplace_back(key, value);
      continue;
    }
    const auto own = std::ranges::find(scenario.constants, key, &NamedConstant::name);
    if (own == scenario.constants.end()) continue;
    settings.emplace_back(
        key, fmt::format("{} {}", *factor_of(value) * own->value, si_unit(own->dimension)));
  }
  return settings;
}

}  // namespace stepsim
