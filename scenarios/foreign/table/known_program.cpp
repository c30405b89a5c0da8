#include "scenarios/foreign/table/known_program.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "scenarios/foreign/table/mapped_source.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr Shelf known_shelf{"scenarios/foreign/programs/known", "program"};

bool has_option(const Launch& launch, const std::string& name) {
  return std::ranges::any_of(launch.arguments, [&](const ShellWord& each) {
    const std::string said = low_lined(each).text, option = fmt::format("--{}", name);
    return said == option || said.starts_with(option + "=");
  });
}

bool is_it(const Table& program, const Launch& launch) {
  return std::ranges::any_of(program.texts("called"),
                             [&](const std::string& pattern) {
                               return fnmatch(pattern.c_str(), launch.program.c_str(), 0) == 0;
                             }) &&
         std::ranges::any_of(program.texts("told"),
                             [&](const std::string& name) { return has_option(launch, name); });
}

// Returns the number that is said, or that the program takes; 0 where neither is a number.
double count_of(const Table& said, const Table& taken, const std::string& key) {
  return number_from<double>(said.has(key) ? said.one_line(key) : taken.text_or(key, ""))
      .value_or(0);
}

// Returns in how many micro-batches a GPU learns its share of a step's rows; 0 where that is not
// said so.
double accumulation(const Table& program, const Launch& launch, const Table& said) {
  if (!program.has("step_rows")) return 0;
  const Table taken = program.table("says");
  const double rows = count_of(said, taken, program.text("step_rows")),
               piece = count_of(said, taken, program.text("rows"));
  const auto gpus = static_cast<double>(launch.gpus.value_or(1) * launch.nodes.value_or(1));
  if (piece <= 0 || rows <= 0) return 0;
  return std::max(1.0, std::floor(std::floor(rows / piece) / gpus));
}

// Returns whether the command tells the key a word of this pattern.
bool tells(const Table& said, const std::string& key, const std::string& pattern) {
  return said.has(key) && !said.one_line(key).starts_with('[') &&
         fnmatch(pattern.c_str(), said.text_or(key, "").c_str(), FNM_CASEFOLD) == 0;
}

// Returns what the program takes for keys that it is not told under any of their names.
Document taken_beside(const Table& facts, const Table& said, const std::string& file) {
  const auto aliases = facts.table_if("also_called");
  const auto plain = [&](const std::string& key) {
    return aliases && aliases->has(key) ? aliases->text(key) : key;
  };
  std::vector<std::string> told;
  for (const std::string& key : said.keys()) told.push_back(plain(key));
  const Table program = facts.table("program");
  Document taken = parse_document("{}", file);
  const auto take = [&](const Table& values) {
    for (const std::string& key : values.keys())
      if (!holds(told, plain(key))) taken.set(key, values.one_line(key));
  };
  take(program.table("says"));
  if (!program.has("cases")) return taken;
  for (const Table& each : program.tables("cases")) {
    const auto told_as = [&](std::string_view where) {
      const auto words = each.table_if(where);
      const std::vector<std::string> keys = words ? words->keys() : std::vector<std::string>{};
      return std::ranges::count_if(
          keys, [&](const std::string& key) { return tells(said, key, words->text(key)); });
    };
    if (told_as("unless") == 0 && (!each.has("when") || told_as("when") > 0))
      take(each.table("says"));
  }
  return taken;
}

}  // namespace

std::optional<KnownProgram> known_program(const Catalogue& data, const Launch& launch) {
  if (!launch.program.ends_with(".py") && launch.program.find('.') == std::string::npos)
    return std::nullopt;
  for (const std::string& name : names_on(data, known_shelf)) {
    const std::string table = fmt::format("programs/known/{}", name);
    const Document facts = import_facts(data, table);
    const Table program = facts.root().table("program");
    if (!is_it(program, launch)) continue;
    KnownProgram known{table, program.text("title")};
    if (const auto releases = program.table_if("releases"))
      for (const std::string& each : releases->keys())
        known.releases.emplace_back(each, releases->text(each));
    return known;
  }
  return std::nullopt;
}

void lay_under(const Catalogue& data, const KnownProgram& known, const Launch& launch,
               const std::string& file, Document& told) {
  const Document facts = import_facts(data, known.table);
  const Table program = facts.root().table("program"), says = program.table("says");
  if (const auto sums = program.table_if("sums"))
    for (const std::string& key : sums->keys()) {
      double sum = 0;
      for (const std::string& each : sums->texts(key)) sum += count_of(told.root(), says, each);
      told.set(key, fmt::format("{:.0f}", sum));
    }
  if (const double count = accumulation(program, launch, told.root()); count > 0)
    told.set("gradient_accumulation_steps", fmt::format("{:.0f}", count));
  told.underlay(taken_beside(facts.root(), told.root(), file), known.title);
}

}  // namespace stepsim
