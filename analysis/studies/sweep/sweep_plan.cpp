#include "analysis/studies/sweep/sweep_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/studies/sweep/expression.hpp"
#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/read/entries.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_points = 1u << 20;
constexpr std::size_t most_values = 1u << 24;  // of all points together

// Splits at the sign, but not inside brackets or quotes.
std::vector<std::string> split_outside_brackets(std::string_view text, char at) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0)
      quote = c == quote ? char{} : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else
      depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == at && depth == 0 && quote == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::optional<double> plain_number(std::string_view text) {
  const auto parsed = parse_quantity(text);
  if (!parsed || parsed->dimension != Dimension::ratio || !std::isfinite(parsed->value))
    return std::nullopt;
  return parsed->value;
}

struct AxisRange {
  double first = 0, last = 0, step = 1;
  bool doubles = false;
};

// Returns nothing where the text is no range, but a word with a colon in it.
std::optional<AxisRange> bounds_of(std::string_view text) {
  const std::vector<std::string> ends = split_outside_brackets(text, ':');
  if (ends.size() < 2 || ends.size() > 3) return std::nullopt;
  const auto first = plain_number(ends[0]), last = plain_number(ends[1]);
  if (!first || !last) return std::nullopt;
  AxisRange bounds{*first, *last};
  if (ends.size() == 2) return bounds;
  bounds.doubles = ends[2].starts_with('*');
  const auto step = plain_number(std::string_view(ends[2]).substr(bounds.doubles ? 1 : 0));
  if (!step) return std::nullopt;
  bounds.step = *step;
  return bounds;
}

UserError too_many(std::string_view where, std::string_view text) {
  return UserError(fmt::format("{}: \"{}\" is more than {} values", where, text, most_points));
}

std::vector<std::string> count_through(std::string_view where, std::string_view text,
                                       const AxisRange& b) {
  if (b.last < b.first) throw UserError(fmt::format("{}: \"{}\" runs backwards", where, text));
  if (b.doubles ? b.step <= 1 || b.first <= 0 : b.step <= 0)
    throw UserError(fmt::format("{}: \"{}\" never arrives: expected a step above {}", where, text,
                                b.doubles ? "1, and a start above 0" : "0"));
  const double slack = b.doubles ? 0 : b.step * 1e-9;  // 0.1 + 0.1 + 0.1 is 0.3 here
  const double steps =
      b.doubles ? std::log(b.last / b.first) / std::log(b.step) : (b.last - b.first) / b.step;
  if (steps > static_cast<double>(most_points)) throw too_many(where, text);
  std::vector<std::string> values;
  double value = b.first;
  while (value <= b.last + slack) {
    values.push_back(fmt::format("{:.12g}", value));
    if (values.size() > most_points) throw too_many(where, text);
    value = b.doubles ? value * b.step : b.first + b.step * static_cast<double>(values.size());
  }
  return values;
}

// Adds one item of a list: itself, or all that a range says.
void add_values(std::string_view where, const std::string& item, std::vector<std::string>& values) {
  const std::size_t begin = item.find_first_not_of(' ');
  if (begin == std::string::npos)
    throw UserError(fmt::format("{}: a value is missing between the commas", where));
  const std::string value = item.substr(begin, item.find_last_not_of(' ') - begin + 1);
  const auto bounds = bounds_of(value);
  const std::vector<std::string> found =
      bounds ? count_through(where, value, *bounds) : std::vector{value};
  if (values.size() + found.size() > most_points)
    throw UserError(fmt::format("{}: more than {} values in one list", where, most_points));
  values.insert(values.end(), found.begin(), found.end());
}

Axis single(std::string_view where, std::string key, const std::vector<std::string>& items) {
  std::vector<std::string> values;
  for (const std::string& item : items) add_values(where, item, values);
  if (values.empty()) throw UserError(fmt::format("{}: expected at least one value", where));
  Axis axis{{std::move(key)}, {}};
  for (std::string& value : values) axis.choices.push_back({std::move(value)});
  return axis;
}

Axis joined(std::string_view where, const std::vector<Axis>& parts) {
  Axis axis;
  if (parts.empty()) return axis;
  axis.choices.resize(parts.front().choices.size());
  for (const Axis& part : parts) {
    if (part.choices.size() != axis.choices.size())
      throw UserError(fmt::format("{}: {} has {} values and {} has {}: they move together", where,
                                  parts.front().keys.front(), axis.choices.size(),
                                  part.keys.front(), part.choices.size()));
    axis.keys.push_back(part.keys.front());
    for (std::size_t i = 0; i < axis.choices.size(); ++i)
      axis.choices[i].push_back(part.choices[i].front());
  }
  return axis;
}

// ---- the file ----

std::vector<Axis> axes_in(const std::string& file, const Table& table, std::string_view group) {
  return mapped(table.keys(), [&](const std::string& key) {
    return single(fmt::format("{}: {}.{}", file, group, key), key, table.values(key));
  });
}

// Points written one by one: an axis whose choices need not name the same keys.
Axis listed(const std::vector<Table>& points) {
  Axis axis;
  for (const Table& point : points)
    for (const std::string& key : point.keys())
      if (!holds(axis.keys, key)) axis.keys.push_back(key);
  for (const Table& point : points) {
    std::vector<std::string> choice;
    for (const std::string& key : axis.keys) {
      std::string text;
      if (point.has(key)) text = point.one_line(key);
      choice.push_back(std::move(text));
    }
    axis.choices.push_back(std::move(choice));
  }
  return axis;
}

// ---- conditions ----

std::optional<Dimension> dimension_of_values(const Axis& axis, std::size_t key) {
  std::optional<Dimension> dimension;
  for (const auto& choice : axis.choices) {
    const auto parsed = parse_quantity(choice[key]);
    if (!parsed || (dimension && *dimension != parsed->dimension)) return std::nullopt;
    dimension = parsed->dimension;
  }
  return dimension;
}

Vocabulary vocabulary_of(const SweepPlan& plan) {
  Vocabulary words;
  words.names = plan.keys();
  std::vector<std::optional<Dimension>> dimensions;
  for (const Axis& axis : plan.axes)
    for (std::size_t k = 0; k < axis.keys.size(); ++k)
      dimensions.push_back(dimension_of_values(axis, k));
  words.dimension = [names = words.names, dimensions](std::string_view name) {
    const auto place = std::ranges::find(names, name);
    return place == names.end() ? std::nullopt
                                : dimensions[static_cast<std::size_t>(place - names.begin())];
  };
  words.is_text = [names = words.names](std::string_view name) { return holds(names, name); };
  return words;
}

Fact fact_of(const Vocabulary& words, const SweepValues& values, std::string_view name) {
  const auto place = std::ranges::find(words.names, name);
  const std::string& text = values[static_cast<std::size_t>(place - words.names.begin())];
  if (text.empty()) return {};
  if (words.dimension(name)) return parse_quantity(text)->value;
  return text;
}

void check_keys(const SweepPlan& plan) {
  if (plan.axes.empty())
    throw UserError("nothing is varied: --vary KEY=VALUES such as cluster.nodes=2:32");
  std::vector<std::string> seen;
  for (const std::string& key : plan.keys()) {
    if (holds(seen, key)) throw UserError(fmt::format("{} is varied twice", key));
    for (const Setting& setting : plan.fixed)
      if (setting.first == key) throw UserError(fmt::format("{} is both set and varied", key));
    seen.push_back(key);
  }
}

}  // namespace

std::vector<std::string> SweepPlan::keys() const {
  std::vector<std::string> all;
  for (const Axis& axis : axes) all.insert(all.end(), axis.keys.begin(), axis.keys.end());
  return all;
}

Axis parse_axis(std::string_view option, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    throw UserError(fmt::format("{}: expected KEY=VALUES such as cluster.nodes=2:32, found \"{}\"",
                                option, text));
  const std::string key(text.substr(0, equals));
  return single(fmt::format("{} {}", option, key), key,
                split_outside_brackets(text.substr(equals + 1), ','));
}

Axis zip(std::string_view option, std::span<const std::string> texts) {
  return joined(option,
                mapped(texts, [&](const std::string& text) { return parse_axis(option, text); }));
}

bool is_sweep_file(const std::string& path) {
  if (!is_file(path)) return false;
  return !is_script(path) && content_of(path).root().has("scenario");
}

SweepPlan read_sweep_file(const std::string& path) {
  const Document document = read_document(path);
  const Table root = document.root();
  SweepPlan plan;
  plan.scenario = beside(path, root.text("scenario"));
  root.text_or("note", "");
  if (const auto fixed = root.table_if("set"))
    for (const std::string& key : fixed->keys()) plan.fixed.emplace_back(key, fixed->one_line(key));
  if (const auto vary = root.table_if("vary")) plan.axes = axes_in(path, *vary, "vary");
  if (const auto together = root.table_if("zip"))
    plan.axes.push_back(joined(path + ": zip", axes_in(path, *together, "zip")));
  if (root.has("list")) plan.axes.push_back(listed(root.tables("list")));
  plan.where = root.texts_or("where");
  document.finish();
  return plan;
}

std::vector<SweepValues> expand(const SweepPlan& plan) {
  check_keys(plan);
  const Vocabulary words = vocabulary_of(plan);
  std::vector<Statement> conditions = mapped(
      plan.where, [&](const std::string& text) { return Statement::parse(text, words, "where"); });
  double size = 1;
  for (const Axis& axis : plan.axes) size *= static_cast<double>(axis.choices.size());
  if (size > static_cast<double>(most_points))
    throw UserError(fmt::format("{:.0f} points are more than {}", size, most_points));
  if (size * static_cast<double>(plan.keys().size()) > static_cast<double>(most_values))
    throw UserError(fmt::format("{:.0f} points of {} settings are more than {} values", size,
                                plan.keys().size(), most_values));
  std::vector<SweepValues> points;
  for (std::size_t number = 0; number < static_cast<std::size_t>(size); ++number) {
    std::vector<const std::vector<std::string>*> chosen(plan.axes.size());
    std::size_t rest = number;
    for (std::size_t a = plan.axes.size(); a-- > 0;) {
      const auto& choices = plan.axes[a].choices;
      chosen[a] = &choices[rest % choices.size()];
      rest /= choices.size();
    }
    SweepValues values;
    for (const auto* choice : chosen) values.insert(values.end(), choice->begin(), choice->end());
    const auto fact = [&](std::string_view name) { return fact_of(words, values, name); };
    const bool kept =
        std::ranges::all_of(conditions, [&](const Statement& each) { return each.holds(fact); });
    if (kept) points.push_back(std::move(values));
  }
  if (points.empty()) throw UserError("no point is left: no combination meets every condition");
  return points;
}

std::vector<Setting> settings_of(const SweepPlan& plan, const SweepValues& values) {
  std::vector<Setting> settings = plan.fixed;
  const std::vector<std::string> keys = plan.keys();
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!values[i].empty()) settings.emplace_back(keys[i], values[i]);
  return settings;
}

}  // namespace stepsim
