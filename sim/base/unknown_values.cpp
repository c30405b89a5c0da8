#include "sim/base/unknown_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/lists.hpp"
#include "sim/base/units.hpp"

namespace stepsim::detail {
namespace {

const std::vector<std::string> fields{"value", "low", "high", "any_of", "grade", "source", "note"};

const Node* field(const Node& node, std::string_view name) {
  for (const auto& [key, child] : node.entries)
    if (key == name) return &child;
  return nullptr;
}

// Somebody meant one, whether or not it is complete.
bool looks_unknown(const Node& node) {
  return std::any_of(fields.begin(), fields.begin() + 4,
                     [&](const std::string& name) { return field(node, name) != nullptr; });
}

struct Settler {
  const Node& node;
  const std::string& path;
  Notes& notes;
  NamedConstant constant{.name = path,
                         .dimension = Dimension::ratio,
                         .value = 0,
                         .low = 0,
                         .high = 0,
                         .grade = Grade::guess,
                         .source = ""};
  std::vector<std::string> others{};
  bool measured = false;  // the dimension is that of what was read

  void problem(std::string_view name, const std::string& message) {
    const Node* at = field(node, name);
    notes.add(at == nullptr ? node.line : at->line,
              name.empty() ? path : fmt::format("{}.{}", path, name), message);
  }

  std::string text(std::string_view name) {
    const Node* found = field(node, name);
    if (found == nullptr) {
      problem(name, name == "source" ? "is missing: where the value and its range come from"
                                     : "is missing");
      return "";
    }
    if (found->shape == Shape::scalar) return found->scalar;
    problem(name, "expected one word or number");
    return "";
  }

  double number(std::string_view name, double fallback) {
    if (field(node, name) == nullptr) return fallback;
    const auto parsed = parse_quantity(text(name));
    if (!parsed || !std::isfinite(parsed->value)) {
      problem(name, "expected a plain number; words and flags are listed under any_of");
      return fallback;
    }
    if (!measured) constant.dimension = parsed->dimension;
    measured = true;
    if (parsed->dimension == constant.dimension) return parsed->value;
    problem(name, fmt::format("expected {}, as before", describe(constant.dimension)));
    return fallback;
  }

  void read_range() {
    constant.value = number("value", number("low", number("high", 0)));
    constant.low = number("low", constant.value);
    constant.high = number("high", constant.value);
    if (constant.low > constant.value || constant.value > constant.high)
      problem("", "expected low <= value <= high");
    for (const std::string_view end : {"low", "high"})
      if (field(node, end) != nullptr) others.push_back(text(end));
  }

  void read_list(const Node& list) {
    const std::string value = stated();
    for (const Node& item : list.items) constant.words.push_back(item.scalar);
    const auto place = std::ranges::find(constant.words, value);
    if (list.shape != Shape::sequence || constant.words.size() < 2 ||
        place == constant.words.end()) {
      problem("any_of", fmt::format("expected a list of at least two, \"{}\" among them", value));
      constant.words.clear();
      return;
    }
    constant.value = static_cast<double>(place - constant.words.begin());
    constant.high = static_cast<double>(constant.words.size() - 1);
    others = constant.words;
  }

  void read() {
    for (const auto& [key, child] : node.entries)
      if (!holds(fields, key))
        problem(key, "unknown key" + did_you_mean(key, fields) + "; expected " + one_of(fields));
    if (field(node, "value") == nullptr) problem("value", "is missing");
    const Node* list = field(node, "any_of");
    const bool ends = field(node, "low") != nullptr || field(node, "high") != nullptr;
    if (list != nullptr && ends)
      problem("any_of", "says again what low and high say");
    else if (list != nullptr)
      read_list(*list);
    else if (ends)
      read_range();
    else
      problem("", "expected low and high, or any_of; what is known stands alone");
    constant.source = text("source");
    if (field(node, "note") != nullptr) constant.source += "; " + text("note");
    if (field(node, "grade") != nullptr) read_grade();
  }

  void read_grade() {
    std::vector<std::string> names;
    const std::string grade = text("grade");
    for (const GradeName& each : grade_names) {
      if (each.grade == Grade::given) continue;
      names.emplace_back(each.name);
      if (each.name == grade) constant.grade = each.grade;
    }
    if (!holds(names, grade)) problem("grade", expected_one_of(names, grade));
  }

  std::string stated() const {
    for (const std::string_view name : {"value", "low", "high"})
      if (const Node* found = field(node, name)) return found->scalar;
    const Node* list = field(node, "any_of");
    return list != nullptr && !list->items.empty() ? list->items.front().scalar : "";
  }

  std::string drawn() {
    if (!notes.draw) return stated();
    const std::string full = notes.scope.empty() ? path : notes.scope + "." + path;
    constant.value = value_in(*notes.draw, constant, full);
    if (!constant.words.empty()) return value_text(constant, constant.value);
    const std::string_view unit = si_unit(constant.dimension);
    return fmt::format("{}{}{}", constant.value, unit.empty() ? "" : " ", unit);
  }
};

}  // namespace

void settle_unknown(Node& node, const std::string& path, Notes& notes) {
  if (node.shape != Shape::mapping) return;
  if (!looks_unknown(node)) {
    for (auto& [key, child] : node.entries)
      settle_unknown(child, path.empty() ? key : fmt::format("{}.{}", path, key), notes);
    return;
  }
  Settler settler{node, path, notes};
  settler.read();
  Node scalar;
  scalar.shape = Shape::scalar;
  scalar.line = node.line;
  scalar.origin = node.origin;
  scalar.scalar = settler.drawn();
  scalar.others = settler.others;
  notes.constants.push_back(settler.constant);
  node = std::move(scalar);
}

}  // namespace stepsim::detail
