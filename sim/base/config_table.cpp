// Reading values out of a parsed file: every rule is checked here, every breach is noted with its
// line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/config.hpp"
#include "sim/base/config_tree.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

using detail::Node;
using detail::Notes;
using detail::Shape;

std::string describe(const Node& node) {
  switch (node.shape) {
    case Shape::nothing:
      return "nothing";
    case Shape::scalar:
      return fmt::format("\"{}\"", node.scalar);
    case Shape::mapping:
      return "a mapping";
    case Shape::sequence:
      return "a list";
  }
  return "";
}

// Returns the values that the node has or may have.
std::vector<std::string> all_of(const Node& node) {
  return node.others.empty() ? std::vector{node.scalar} : node.others;
}

std::string in_single_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

// A name that means the same with quotes and without: no number, no word of YAML's own.
bool is_plain_name(const std::string& text) {
  constexpr std::array<std::string_view, 12> own{"true", "false", "yes",  "no",   "on",  "off",
                                                 "y",    "n",     "null", "none", "inf", "nan"};
  const auto fits = [](char c) {
    return is_letter_or_digit(c) || std::string_view("_./+-").find(c) != std::string_view::npos;
  };
  return !text.empty() && (is_letter(text.front()) || text.front() == '/') &&
         std::ranges::all_of(text, fits) &&
         std::ranges::find(own, in_small_letters(text)) == own.end();
}

// Writes the node as YAML in one line, scalars as they were written, names without quotes.
std::string in_one_line(const Node& node) {
  std::string text;
  switch (node.shape) {
    case Shape::nothing:
      return "null";
    case Shape::scalar:
      return node.quoted && !is_plain_name(node.scalar) ? in_single_quotes(node.scalar)
                                                        : node.scalar;
    case Shape::mapping:
      for (const auto& [key, value] : node.entries)
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, in_one_line(value));
      return "{" + text + "}";
    case Shape::sequence:
      for (const Node& item : node.items) text += (text.empty() ? "" : ", ") + in_one_line(item);
      return "[" + text + "]";
  }
  return text;
}

// Whatever stands below is known.
void take_all(const Node& node) {
  node.used = true;
  for (const auto& [key, child] : node.entries) take_all(child);
  for (const Node& item : node.items) take_all(item);
}

constexpr double harmless = 1;  // lets reading go on; the problem is noted and will be thrown

bool must_be_positive(Dimension dimension) {
  return dimension == Dimension::bytes_per_second || dimension == Dimension::flops_per_second;
}

std::string joined(const std::string& path, std::string_view key) {
  std::string all;
  all.reserve(path.size() + 1 + key.size());
  if (!path.empty()) all.append(path).push_back('.');
  return all.append(key);
}

bool is_scalar(const Node* node) {
  return node != nullptr && node->shape == Shape::scalar;
}

std::string expected_quantity(Dimension dimension) {
  return fmt::format("{} such as \"{}\"", describe(dimension), example(dimension));
}

// Returns the grades that a file may give a constant: all but `given`, which no file says.
const std::vector<std::string>& grades_of_files() {
  static const std::vector<std::string> grades = [] {
    std::vector<std::string> names;
    for (const GradeName& entry : grade_names)
      if (entry.grade != Grade::given) names.emplace_back(entry.name);
    return names;
  }();
  return grades;
}

// No reader has so many keys of its own: who asks for more goes through those of the file.
constexpr std::size_t most_asked = 500;

void note_asked(const Node& mapping, std::string_view key) {
  if (mapping.asked.size() < most_asked && !holds(mapping.asked, key))
    mapping.asked.emplace_back(key);
}

// Begins at the key found last, as most keys are asked for in the order of the file, some of them
// twice: so going through all of them takes no time that grows with the square of their number.
const Node* child_at(const Node& mapping, std::string_view key) {
  const std::vector<detail::Entry>& entries = mapping.entries;
  const auto is_it = [&](const detail::Entry& entry) { return entry.key == key; };
  const auto middle =
      entries.begin() + static_cast<std::ptrdiff_t>(std::min(mapping.last, entries.size()));
  auto found = std::find_if(middle, entries.end(), is_it);
  if (found == entries.end()) {
    found = std::find_if(entries.begin(), middle, is_it);
    if (found == middle) return nullptr;
  }
  mapping.last = static_cast<std::size_t>(found - entries.begin());
  return &found->value;
}

// The name of an entry of a list, if it has one.
std::string own_name(const Node& item) {
  for (const auto& [key, value] : item.entries)
    if (key == "name") return value.scalar;
  return "";
}

}  // namespace

Table::Table(Notes* notes, const Node* node, std::string path, std::string called)
    : notes_(notes), node_(node), path_(std::move(path)), called_(std::move(called)) {}

std::string Table::path_of(std::string_view key) const {
  return joined(path_, key);
}

std::string Table::name_of(std::string_view key) const {
  return joined(called_, key);
}

const Node* Table::find(std::string_view key, bool required) const {
  if (node_ == nullptr) return nullptr;
  note_asked(*node_, key);
  if (const Node* child = child_at(*node_, key)) {
    child->used = true;
    if (child->shape != Shape::nothing) return child;
  }
  if (required) notes_->add(node_->line, path_of(key), "is missing");
  return nullptr;
}

const Node* Table::find_scalar(std::string_view key, bool required,
                               std::string_view expected) const {
  const Node* node = find(key, required);
  if (node == nullptr || node->shape == Shape::scalar) return node;
  notes_->add(node->line, path_of(key),
              fmt::format("expected {}, found {}", expected, describe(*node)));
  return nullptr;
}

bool Table::has(std::string_view key) const {
  return find(key, false) != nullptr;
}

bool Table::is_mapping(std::string_view key) const {
  const Node* node = find(key, false);
  return node != nullptr && node->shape == Shape::mapping;
}

std::optional<Origin> Table::origin(std::string_view key) const {
  const Node* node = find(key, false);
  if (node == nullptr) return {};
  return Origin{notes_->origins[node->origin], node->line};
}

std::vector<std::string> Table::keys() const {
  std::vector<std::string> names;
  if (node_ == nullptr) return names;
  for (const auto& [name, child] : node_->entries) names.push_back(name);
  return names;
}

void Table::problem(std::string_view key, std::string_view message, Fault fault) const {
  const Node* node = find(key, false);
  const int line = node != nullptr ? node->line : node_ != nullptr ? node_->line : 0;
  notes_->add(line, path_of(key), std::string(message), fault);
}

bool Table::sound() const {
  return notes_->problems.empty();
}

std::size_t Table::problems() const {
  return notes_->problems.size();
}

std::string Table::text(std::string_view key) const {
  const Node* node = find_scalar(key, true, "a text");
  return node == nullptr ? "" : node->scalar;
}

std::string Table::text_or(std::string_view key, std::string_view fallback) const {
  const Node* node = find_scalar(key, false, "a text");
  return node == nullptr ? std::string(fallback) : node->scalar;
}

std::string Table::choice(std::string_view key, const std::vector<std::string>& allowed) const {
  const Node* node = find(key, false);
  if (!is_scalar(node)) {
    find_scalar(key, true, one_of(allowed));
    return "";
  }
  for (const std::string& word : all_of(*node))
    if (!holds(allowed, word))
      notes_->add(node->line, path_of(key), expected_one_of(allowed, word));
  return node->scalar;
}

bool Table::flag_or(std::string_view key, bool fallback) const {
  const Node* node = find_scalar(key, false, "true or false");
  if (node == nullptr) return fallback;
  for (const std::string& word : all_of(*node)) {
    if (!node->quoted && (word == "true" || word == "false")) continue;
    notes_->add(node->line, path_of(key),
                fmt::format("expected true or false, found {}\"{}\"",
                            node->quoted ? "the text " : "", word));
    return fallback;
  }
  return node->scalar == "true";
}

double Table::bounded_number(const Node& node, std::string_view key, double low,
                             double high) const {
  const auto reject = [&](const std::string& message) {
    notes_->add(node.line, path_of(key), message);
    return low;
  };
  const auto number = [&](const std::string& text) {
    const auto parsed = parse_quantity(text);
    if (node.quoted || !parsed || parsed->dimension != Dimension::ratio ||
        !std::isfinite(parsed->value))
      return reject(fmt::format("expected a plain number, found {}\"{}\"",
                                node.quoted ? "the text " : "", text));
    if (parsed->value < low || parsed->value > high)
      return reject(fmt::format("expected a number from {} to {}, found {}", low, high, text));
    return parsed->value;
  };
  const std::size_t before = problems();
  for (const std::string& other : node.others) number(other);
  return problems() == before ? number(node.scalar) : low;
}

double Table::number(std::string_view key, double low, double high) const {
  const Node* node = find_scalar(key, true, "a plain number");
  return node == nullptr ? low : bounded_number(*node, key, low, high);
}

double Table::number_or(std::string_view key, double fallback, double low, double high) const {
  const Node* node = find_scalar(key, false, "a plain number");
  return node == nullptr ? fallback : bounded_number(*node, key, low, high);
}

std::int64_t Table::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  double value = number(key, static_cast<double>(low), static_cast<double>(high));
  if (const Node* node = find(key, false); node != nullptr && !node->others.empty()) {
    value = std::round(value);
    for (NamedConstant& constant : notes_->constants)
      if (constant.name == name_of(key)) constant.whole = true;
  }
  if (value != std::floor(value))
    problem(key, fmt::format("expected a whole number, found {}", value));
  return static_cast<std::int64_t>(value);
}

std::int64_t Table::integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                               std::int64_t high) const {
  return has(key) ? integer(key, low, high) : fallback;
}

double Table::quantity_of(std::string_view key, Dimension dimension) const {
  const Node* node = find(key, false);
  if (is_scalar(node)) return quantity_in(*node, key, dimension);
  find_scalar(key, true, expected_quantity(dimension));
  return harmless;
}

double Table::quantity_in(const Node& node, std::string_view key, Dimension dimension) const {
  const auto reject = [&](const std::string& why) {
    notes_->add(node.line, path_of(key), why);
    return harmless;
  };
  const auto parsed = parse_quantity(node.scalar);
  if (!parsed)
    return reject(fmt::format("expected {}, found \"{}\"; units: {}", expected_quantity(dimension),
                              node.scalar, known_units(dimension)));
  if (parsed->dimension == Dimension::ratio && dimension != Dimension::ratio)
    return reject(fmt::format("the unit is missing: expected {}, found \"{}\"",
                              expected_quantity(dimension), node.scalar));
  if (parsed->dimension != dimension)
    return reject(fmt::format("expected {}, found {} (\"{}\")", expected_quantity(dimension),
                              describe(parsed->dimension), node.scalar));
  if (!std::isfinite(parsed->value))
    return reject(fmt::format("expected a finite number, found \"{}\"", node.scalar));
  if (parsed->value < 0 || (parsed->value == 0 && must_be_positive(dimension)))
    return reject(fmt::format("{} must be {}, found \"{}\"", describe(dimension),
                              must_be_positive(dimension) ? "above zero" : "zero or more",
                              node.scalar));
  return parsed->value;
}

std::pair<double, double> Table::range(std::string_view key, Dimension dimension) const {
  const Node* node = find(key, true);
  if (node == nullptr || node->shape != Shape::sequence) {
    const double value = quantity_of(key, dimension);
    return {value, value};
  }
  const bool scalars = std::ranges::all_of(
      node->items, [](const Node& item) { return item.shape == Shape::scalar; });
  if (node->items.size() != 2 || !scalars) {
    notes_->add(node->line, path_of(key),
                fmt::format("expected {} or a list [low, high] of two", describe(dimension)));
    return {harmless, harmless};
  }
  const double low = quantity_in(node->items[0], key, dimension);
  const double high = quantity_in(node->items[1], key, dimension);
  if (low > high)
    notes_->add(node->line, path_of(key),
                fmt::format("expected low <= high, found [{}, {}]", node->items[0].scalar,
                            node->items[1].scalar));
  return {low, high};
}

NamedConstant Table::constant_of(std::string_view key, Dimension dimension) const {
  NamedConstant constant;
  constant.name = name_of(key);
  constant.dimension = dimension;
  constant.value = constant.low = constant.high = harmless;
  const Node* node = find(key, true);
  if (node == nullptr) return constant;
  if (node->shape != Shape::mapping) {
    notes_->add(node->line, path_of(key),
                fmt::format("expected a constant {{value, low, high, grade, source}}, found {}",
                            describe(*node)));
    return constant;
  }
  const Table table(notes_, node, path_of(key), name_of(key));
  const std::size_t problems_before = notes_->problems.size();
  constant.value = table.quantity_of("value", dimension);
  constant.low = table.has("low") ? table.quantity_of("low", dimension) : constant.value;
  constant.high = table.has("high") ? table.quantity_of("high", dimension) : constant.value;
  const std::string grade = table.choice("grade", grades_of_files());
  for (const GradeName& entry : grade_names)
    if (entry.name == grade) constant.grade = entry.grade;
  constant.source = table.text("source");
  const std::string note = table.text_or("note", "");
  if (!note.empty()) constant.source += "; " + note;
  if (notes_->problems.size() == problems_before &&
      (constant.low > constant.value || constant.value > constant.high))
    notes_->add(node->line, path_of(key), "expected low <= value <= high");
  const std::string full = joined(notes_->scope, constant.name);
  if (notes_->draw) constant.value = value_in(*notes_->draw, constant, full);
  for (const auto& [name, value] : notes_->given) {
    if (name != full) continue;
    constant.value = constant.low = constant.high = value;
    constant.grade = Grade::given;
    constant.source = "given by the user";
  }
  notes_->constants.push_back(constant);
  return constant;
}

Table Table::table(std::string_view key) const {
  const Node* node = find(key, true);
  if (node != nullptr && node->shape != Shape::mapping) {
    notes_->add(node->line, path_of(key),
                fmt::format("expected a mapping, found {}", describe(*node)));
    node = nullptr;
  }
  return {notes_, node, path_of(key), name_of(key)};
}

std::optional<Table> Table::table_if(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return table(key);
}

std::vector<Table> Table::tables(std::string_view key) const {
  std::vector<Table> list;
  const Node* node = find(key, true);
  if (node == nullptr) return list;
  if (node->shape != Shape::sequence) {
    notes_->add(node->line, path_of(key),
                fmt::format("expected a list of mappings, found {}", describe(*node)));
    return list;
  }
  for (const Node& item : node->items) {
    const std::string place = fmt::format("[{}]", list.size()), own = own_name(item);
    const std::string path = path_of(key) + place;
    item.used = true;
    if (item.shape != Shape::mapping)
      notes_->add(item.line, path, fmt::format("expected a mapping, found {}", describe(item)));
    list.push_back(Table(notes_, item.shape == Shape::mapping ? &item : nullptr, path,
                         name_of(key) + (own.empty() ? place : "." + own)));
  }
  return list;
}

std::vector<std::string> Table::texts(std::string_view key) const {
  std::vector<std::string> list;
  const Node* node = find(key, true);
  if (node == nullptr) return list;
  if (node->shape != Shape::sequence) {
    notes_->add(node->line, path_of(key),
                fmt::format("expected a list, found {}", describe(*node)));
    return list;
  }
  for (const Node& item : node->items) {
    if (item.shape != Shape::scalar)
      notes_->add(item.line, fmt::format("{}[{}]", path_of(key), list.size()),
                  fmt::format("expected a word, found {}", describe(item)));
    list.push_back(item.scalar);
  }
  return list;
}

std::string Table::one_line(std::string_view key) const {
  const Node* node = find(key, true);
  if (node == nullptr) return "";
  take_all(*node);
  return in_one_line(*node);
}

std::vector<std::string> Table::values(std::string_view key) const {
  std::vector<std::string> list;
  const Node* node = find(key, true);
  if (node == nullptr) return list;
  take_all(*node);
  if (node->shape != Shape::sequence) return {in_one_line(*node)};
  for (const Node& item : node->items) list.push_back(in_one_line(item));
  return list;
}

std::vector<std::string> Table::texts_or(std::string_view key) const {
  return has(key) ? texts(key) : std::vector<std::string>{};
}

}  // namespace stepsim
