#include "scenarios/foreign/write/foreign_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/foreign/table/mapped_source.hpp"
#include "sim/base/letters.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {
namespace {

// Other programs want whole numbers as such: 5e8 is 500000000.
std::string plain_number(const std::string& text) {
  const auto value = number_from<double>(text);
  constexpr double largest = 1e15;
  return value && std::abs(*value) < largest && *value == std::floor(*value)
             ? fmt::format("{:.0f}", *value)
             : text;
}

bool is_bare(const std::string& value) {
  return value == "true" || value == "false" || value.starts_with('[') ||
         number_from<double>(value);
}

std::string quoted(const std::string& value) {
  return is_bare(value) ? value : yaml_quoted(value);
}

std::string_view section_of(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == key.npos ? std::string_view() : key.substr(0, dot);
}

// A tree of blocks, each in the order in which its keys came.
struct Branch {
  std::string key, value;
  std::vector<Branch> inner{};
};

void grow(std::vector<Branch>& tree, std::string_view key, const std::string& value) {
  const std::size_t dot = key.find('.');
  const std::string_view head = key.substr(0, dot);
  auto place = std::find_if(tree.begin(), tree.end(),
                            [&](const Branch& branch) { return branch.key == head; });
  if (place == tree.end()) place = tree.insert(tree.end(), {std::string(head), ""});
  if (dot == key.npos)
    place->value = value;
  else
    grow(place->inner, key.substr(dot + 1), value);
}

std::vector<Branch> tree_of(const ForeignLines& lines) {
  std::vector<Branch> tree;
  for (const auto& [key, value] : lines.lines()) grow(tree, key, value);
  return tree;
}

void write_yaml(const std::vector<Branch>& tree, std::size_t indent, std::string& text) {
  for (const Branch& branch : tree) {
    text += fmt::format("{:{}}{}:{}{}\n", "", indent, branch.key, branch.inner.empty() ? " " : "",
                        branch.inner.empty() ? quoted(branch.value) : "");
    write_yaml(branch.inner, indent + 2, text);
  }
}

void write_json(const std::vector<Branch>& tree, std::size_t indent, std::string& text) {
  text += "{\n";
  for (const Branch& branch : tree) {
    text += fmt::format("{:{}}\"{}\": ", "", indent + 2, branch.key);
    if (branch.inner.empty())
      text += quoted(branch.value);
    else
      write_json(branch.inner, indent + 2, text);
    text += &branch == &tree.back() ? "\n" : ",\n";
  }
  text += fmt::format("{:{}}}}", "", indent);
}

}  // namespace

ForeignLines::ForeignLines(const Catalogue& data, const Scenario& scenario, std::string_view table)
    : scenario_(scenario),
      data_(data),
      facts_(read_document(data.file(fmt::format("scenarios/foreign/{}.yaml", table)))),
      keys_(resolved_keys(scenario)) {}

ForeignLines::ForeignLines(const Scenario& scenario)
    : scenario_(scenario), facts_(parse_document("{}", "")), keys_(resolved_keys(scenario)) {}

std::string ForeignLines::value(std::string_view path) const {
  const auto place = std::find_if(keys_.begin(), keys_.end(),
                                  [&](const ResolvedKey& key) { return key.path() == path; });
  return place == keys_.end() || !place->matters ? "" : place->value;
}

std::string ForeignLines::model() const {
  const std::string said = value("model");
  if (said.starts_with('{')) return scenario_.model.name;  // a config.json of its own
  return published_name(data_, parse_document("model: " + said, "").root().text("model"));
}

double ForeignLines::number(std::string_view path) const {
  return number_from<double>(value(path)).value_or(0);
}

void ForeignLines::say(std::string_view key, const std::string& value) {
  lines_.emplace_back(key, plain_number(value));
}

std::string ForeignLines::precision() const {
  const Table words = facts().table("precisions");
  const std::vector<std::string> theirs = words.keys();
  const auto word = std::ranges::find_if(
      theirs, [&](const std::string& each) { return is("strategy.precision", words.text(each)); });
  return word == theirs.end() ? "" : *word;
}

void ForeignLines::say_mapped() {
  for (const MappedKey& key : mapped_keys(facts_)) {
    const std::string ours = value(key.ours);
    const bool idle = std::any_of(key.with.begin(), key.with.end(), [&](const auto& other) {
      return !is(other.first, other.second);
    });
    const bool said = std::any_of(lines_.begin(), lines_.end(),
                                  [&](const auto& line) { return line.first == key.theirs; });
    if (ours.empty() || idle || said) continue;
    if (const auto theirs = their_word(key, ours); theirs && *theirs != key.nothing)
      say(key.theirs, *theirs);
  }
}

std::string toml_text(const ForeignLines& lines) {
  std::vector<std::string_view> sections;
  for (const auto& [key, value] : lines.lines())
    if (const auto section = section_of(key);
        std::find(sections.begin(), sections.end(), section) == sections.end())
      sections.push_back(section);
  std::string text;
  for (const std::string_view section : sections) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    for (const auto& [key, value] : lines.lines())
      if (section_of(key) == section)
        text += fmt::format("{} = {}\n", key.substr(section.size() + 1), quoted(value));
  }
  return text;
}

std::string yaml_text(const ForeignLines& lines) {
  std::string text;
  write_yaml(tree_of(lines), 0, text);
  return text;
}

std::string json_text(const ForeignLines& lines) {
  std::string text;
  write_json(tree_of(lines), 0, text);
  return text + "\n";
}

std::string argument_text(const ForeignLines& lines, const std::vector<std::string>& flags) {
  std::string text;
  for (const auto& [key, value] : lines.lines()) {
    const bool flag = std::find(flags.begin(), flags.end(), key) != flags.end();
    if (flag && value != "true") continue;
    std::string words = value;
    if (words.starts_with('[')) {
      words = words.substr(1, words.size() - 2);
      std::erase(words, ',');
    }
    text += flag ? fmt::format(" \\\n  --{}", key) : fmt::format(" \\\n  --{} {}", key, words);
  }
  return text + "\n";
}

std::string override_text(const ForeignLines& lines) {
  std::string text;
  for (const auto& [key, value] : lines.lines()) text += fmt::format(" \\\n  {}={}", key, value);
  return text + "\n";
}

}  // namespace stepsim
