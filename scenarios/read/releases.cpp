#include "scenarios/read/releases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "scenarios/read/entries.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::string_view origin_front = "release ";

// The facts of a file that hold of a release.
std::vector<Table> facts_of(const Document& file, const std::string& release) {
  std::vector<Table> facts;
  for (const Table& fact : file.root().tables("facts"))
    if (within_releases(release, fact.text_or("from", ""), fact.text_or("before", "")))
      facts.push_back(fact);
  return facts;
}

// The release that the scenario says, or the one that is taken.
std::string release_of(const Document& scenario, const Document& file) {
  const std::string program = file.root().text("name");
  return scenario.peek(fmt::format("{}.{}", releases_block, program))
      .value_or(file.root().text("assumed"));
}

Default default_of(const Table& fact, const std::string& origin) {
  Default made{{}, fact.table("set"), origin};
  if (const auto when = fact.table_if("when"))
    for (const std::string& key : when->keys()) made.when.emplace_back(key, when->values(key));
  return made;
}

}  // namespace

bool is_release(std::string_view text) {
  return numbers_of_release(text).has_value();
}

std::string assumed_release(const Catalogue& data, const std::string& program) {
  return open_entry(data, release_shelf, program).root().text("assumed");
}

std::vector<std::pair<std::string, std::string>> release_words(const Catalogue& data,
                                                               const std::string& program,
                                                               const std::string& release) {
  std::vector<std::pair<std::string, std::string>> words;
  if (!is_on(data, release_shelf, program)) return words;
  const Document file = open_entry(data, release_shelf, program);
  for (const Table& fact : facts_of(file, release))
    if (const auto absent = fact.table_if("absent"))
      for (const std::string& key : absent->keys()) words.emplace_back(key, absent->text(key));
  return words;
}

std::vector<std::pair<std::string, std::string>> releases_below(const Catalogue& data,
                                                                const std::string& program,
                                                                const std::string& release) {
  std::vector<std::pair<std::string, std::string>> below;
  const Document file = open_entry(data, release_shelf, program);
  for (const Table& fact : facts_of(file, release))
    if (const auto set = fact.table_if("set"))
      if (const auto others = set->table_if(releases_block))
        for (const std::string& each : others->keys()) below.emplace_back(each, others->text(each));
  return below;
}

std::optional<std::string> release_with(const Catalogue& data, const std::string& program,
                                        const std::vector<std::string>& keys) {
  if (!is_on(data, release_shelf, program)) return std::nullopt;
  const Document file = open_entry(data, release_shelf, program);
  for (const Table& fact : file.root().tables("facts"))
    for (const std::string& key : fact.texts_or("keys"))
      if (holds(keys, key)) return fact.text("last");
  return std::nullopt;
}

std::vector<Default> release_defaults(const Catalogue& data, Document& scenario,
                                      const std::vector<std::string>& of_stack,
                                      std::vector<Document>& files) {
  std::vector<std::string> programs;
  if (scenario.root().is_mapping(releases_block))
    programs = scenario.root().table(releases_block).keys();
  for (const std::string& each : of_stack)
    if (!holds(programs, each)) programs.push_back(each);
  std::vector<Default> defaults;
  for (const std::string& program : programs) {
    if (!is_on(data, release_shelf, program)) continue;
    const Document& file = files.emplace_back(open_entry(data, release_shelf, program));
    const std::string release = release_of(scenario, file);
    if (!is_release(release)) continue;
    const std::string origin = release_origin(program, release);
    for (const Table& fact : facts_of(file, release)) {
      if (!fact.has("set")) continue;
      Default made = default_of(fact, origin);
      if (made.set.is_mapping(releases_block)) scenario.underlay(made.set, origin);
      defaults.push_back(std::move(made));
    }
  }
  return defaults;
}

std::vector<std::string> release_lines(const Table& file) {
  std::vector<std::string> lines{fmt::format("{} is taken where nobody says a release{}",
                                             file.text("assumed"), file.text_or("why", ""))};
  file.text("name");
  file.text("title");
  file.texts_or("packages");
  for (const Table& fact : file.tables("facts")) {
    const std::string from = fact.text_or("from", ""), before = fact.text_or("before", "");
    for (const auto& [key, release] : {std::pair{"from", from}, std::pair{"before", before}})
      if (!release.empty() && !is_release(release))
        fact.problem(key, "expected numbers with dots, such as 0.18.5");
    std::vector<std::string> words;
    if (!from.empty()) words.push_back(fmt::format("from {}", from));
    if (!before.empty()) words.push_back(fmt::format("before {}", before));
    lines.push_back(fmt::format("{}: {}", fmt::join(words, ", "), fact.text("what")));
    fact.text("source");
    if (!fact.texts_or("keys").empty() && !within_releases(fact.text("last"), from, before))
      fact.problem("last", "expected a release of which the fact holds");
    if (const auto absent = fact.table_if("absent"))
      for (const std::string& key : absent->keys()) absent->text(key);
    if (!fact.has("set")) continue;
    default_of(fact, "");
    fact.one_line("set");
  }
  return lines;
}

void check_releases(const Catalogue& data, const Table& root) {
  const auto block = root.table_if(releases_block);
  if (!block) return;
  for (const std::string& program : block->keys()) {
    if (!known(*block, program, "program", program, data, {release_shelf})) continue;
    const std::string said = block->text(program);
    if (!is_release(said))
      block->problem(program, fmt::format("expected numbers with dots, such as {}, found \"{}\"",
                                          assumed_release(data, program), said));
  }
}

std::string releases_text(const Catalogue& data, const Scenario& scenario) {
  std::vector<std::string> words;
  const std::string front = fmt::format("{}.", releases_block);
  for (const SaidKey& said : scenario.said)
    if (said.path.starts_with(front))
      words.push_back(fmt::format("{} {}", said.path.substr(front.size()), said.text));
  if (!words.empty() || !is_on(data, stack_shelf, scenario.stack.name))
    return fmt::format("{}", fmt::join(words, ", "));
  const Document stack = open_entry(data, stack_shelf, scenario.stack.name);
  const std::vector<std::string> programs = stack.root().texts_or(releases_block);
  if (programs.empty()) return "";
  return fmt::format("{} {} (assumed)", programs.front(), assumed_release(data, programs.front()));
}

const KeyFacts& release_facts(std::string_view program) {
  // Keys keep views, so that names have to stay where they are.
  static std::map<std::string, KeyFacts, std::less<>> facts;
  const auto [place, made] = facts.try_emplace(std::string(program));
  if (made) place->second = {.name = place->first};
  return place->second;
}

bool is_of_release(const Origin& origin) {
  return origin.source.starts_with(origin_front);
}

std::string release_origin(std::string_view program, std::string_view release) {
  return fmt::format("{}{} {}", origin_front, program, release);
}

}  // namespace stepsim
