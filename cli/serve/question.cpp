#include "cli/serve/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/config.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_files = 8, most_settings = 256;
// Settings, scripts, which are read and never run, and logs.
constexpr std::array<std::string_view, 10> posted_endings{
    ".yaml", ".yml", ".json", ".toml", ".py", ".ipynb", ".sh", ".log", ".txt", ".csv"};

AskedScenario read_asked(const Table& table) {
  AskedScenario asked{.source = table.text("source"), .settings = {}};
  if (!table.has("set")) return asked;
  for (const Table& setting : table.tables("set"))
    asked.settings.emplace_back(setting.text("key"), setting.text("value"));
  if (asked.settings.size() > most_settings)
    table.problem("set", fmt::format("more than {} settings", most_settings));
  return asked;
}

std::vector<PostedFile> read_files(const Table& root) {
  std::vector<PostedFile> files;
  std::vector<Problem> problems;
  if (!root.has("files")) return files;
  for (const Table& each : root.tables("files")) {
    files.push_back({each.text("name"), each.text("text")});
    if (const std::string& name = files.back().name; root.sound() && !may_be_posted(name))
      problems.push_back({name, 0, "",
                          fmt::format("cannot be dropped: its name has to end in {} and to hold "
                                      "letters, digits and ._- alone",
                                      one_of(texts_of(posted_endings)))});
  }
  if (!problems.empty()) throw UserError(problems);
  if (files.size() > most_files)
    root.problem("files", fmt::format("more than {} files", most_files));
  return files;
}

}  // namespace

bool may_be_posted(std::string_view name) {
  constexpr std::size_t longest = 100;
  return name.size() <= longest && !name.starts_with('.') &&
         std::ranges::all_of(
             name,
             [](char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; }) &&
         std::ranges::any_of(posted_endings,
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

Question read_question(std::string_view json) {
  const Document document = parse_document(json, "the question");
  const Table root = document.root();
  Question question;
  question.files = read_files(root);
  if (const auto a = root.table_if("a")) question.a = read_asked(*a);
  if (const auto b = root.table_if("b")) question.b = read_asked(*b);
  question.interval = root.flag_or("interval", false);
  document.finish();
  return question;
}

ToolQuestion read_tool_question(const Tool& tool, std::string_view json) {
  constexpr std::array<std::string_view, 1> own{"files"};
  const Document document = parse_document(json, "the question");
  const Table root = document.root();
  ToolQuestion question;
  question.files = read_files(root);
  question.words = words_of(tool, root, own);
  document.finish();
  return question;
}

}  // namespace stepsim
