#include "scenarios/foreign/table/translation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::size_t width = 120;

// "job.sequence" at depth 0 is "job", at depth 1 "sequence".
std::string_view part_at(std::string_view path, std::size_t depth) {
  for (; depth > 0; --depth) path.remove_prefix(path.find('.') + 1);
  return path.substr(0, path.find('.'));
}

bool ends_at(std::string_view path, std::size_t depth) {
  return static_cast<std::size_t>(std::count(path.begin(), path.end(), '.')) == depth;
}

// What stands in the place of a key is an option, a release, or a file beside the source.
bool is_key(const std::string& key) {
  return !key.empty() && !key.starts_with('-') && !key.starts_with("release ") &&
         !key.starts_with("beside ");
}

std::string comment_of(const TranslatedLine& line) {
  std::string text = line.key;
  if (line.line > 0)
    text += fmt::format(", line {}", line.line);
  else if (!line.by.empty())
    text += fmt::format(", as {} has it", line.by);
  else if (is_key(line.key))
    text += " is absent";
  if (!text.empty() && !line.remark.empty()) text += ": ";
  return text + line.remark;
}

void write_block(std::span<const TranslatedLine* const> lines, std::size_t depth,
                 std::string& text) {
  std::vector<std::string_view> parts;
  for (const TranslatedLine* line : lines)
    if (const auto part = part_at(line->path, depth);
        std::find(parts.begin(), parts.end(), part) == parts.end())
      parts.push_back(part);
  const std::string margin(2 * depth, ' ');
  for (const std::string_view part : parts) {
    std::vector<const TranslatedLine*> inner;
    for (const TranslatedLine* line : lines)
      if (part_at(line->path, depth) == part) inner.push_back(line);
    if (!ends_at(inner.front()->path, depth)) {
      text += fmt::format("{}{}:\n", margin, part);
      write_block(inner, depth + 1, text);
      continue;
    }
    const TranslatedLine& line = *inner.front();
    const std::string said = fmt::format("{}{}: {}", margin, part, line.value);
    const std::string comment = comment_of(line);
    text += comment.empty() ? said + "\n" : fmt::format("{:<40}  # {}\n", said, comment);
  }
}

std::string comment_block(const std::string& text) {
  std::string lines = "# " + wrap(text, width, 2);
  for (std::size_t at = lines.find("\n  "); at != std::string::npos; at = lines.find("\n  ", at))
    lines.replace(at, 3, "\n# ");
  return lines + "\n";
}

// Returns the source of a line as `show` says it.
std::string source_of(const Translation& translation, const TranslatedLine& line) {
  if (line.key.empty()) return "taken";
  if (!is_key(line.key)) return line.key;
  if (line.line > 0) return fmt::format("{}:{}", translation.file, line.line);
  if (holds(translation.set, line.key)) return "--set";
  return fmt::format("{}: no {}", translation.file, line.key);
}

const TranslatedLine* line_of(const Translation& translation, std::string_view key) {
  const auto said = [&](const TranslatedLine& line) {
    return key == line.path || (key.starts_with(line.path) && key[line.path.size()] == '.');
  };
  const auto place = std::find_if(translation.lines.begin(), translation.lines.end(), said);
  return place == translation.lines.end() ? nullptr : &*place;
}

}  // namespace

Document document_of(const Translation& translation) {
  Document document = parse_document("{}", translation.file);
  for (const TranslatedLine& line : translation.lines) {
    Document one = parse_document("{}", translation.file);
    one.set(line.path, line.value);
    document.underlay(one, source_of(translation, line));
  }
  return document;
}

void keep_lines(const Translation& translation, Document& document) {
  for (const TranslatedLine& line : translation.lines) {
    if (!line.stays) continue;
    Document one = parse_document("{}", translation.file);
    one.set(line.path, line.value);
    document.underlay(one, source_of(translation, line));
  }
}

std::string translated_scenario(const Translation& translation) {
  std::string text = comment_block(fmt::format("What {}, a file of {}, says as a scenario.",
                                               translation.file, translation.program));
  for (const Assumption& each : translation.assumptions)
    text +=
        comment_block(fmt::format("{}: {}; {} ({})", each.what, each.taken, each.why, each.change));
  for (const SourceKey& key : translation.keys)
    if (key.fate == KeyFate::unmodelled)
      text += comment_block(fmt::format("{} is not modelled: {}", key.key, key.remark));
  for (const std::string& note : translation.notes) text += comment_block(note);
  std::vector<const TranslatedLine*> lines;
  lines.reserve(translation.lines.size());
  for (const TranslatedLine& line : translation.lines) lines.push_back(&line);
  write_block(lines, 0, text);
  return text;
}

std::string key_lists(const Translation& translation) {
  std::string text;
  for (std::size_t i = 0; i < key_fate_titles.size(); ++i) {
    TextTable table{{std::string(key_fate_titles[i]), " line", ""}};
    for (const SourceKey& key : translation.keys)
      if (key.fate == static_cast<KeyFate>(i))
        table.rows.push_back({key.key, key.line > 0 ? std::to_string(key.line) : "", key.remark});
    if (table.rows.empty()) continue;
    text += (text.empty() ? "" : "\n") + render(table);
  }
  return text;
}

std::vector<Problem> in_words_of_source(std::vector<Problem> problems,
                                        const Translation& translation) {
  for (Problem& problem : problems) {
    if (problem.file != translation.file) continue;
    const TranslatedLine* line = line_of(translation, problem.key);
    if (line == nullptr || line->key.empty()) continue;
    problem.message = fmt::format("{} (as {} of the scenario)", problem.message, problem.key);
    problem.key = line->key;
    problem.line = line->line;
  }
  return problems;
}

}  // namespace stepsim
