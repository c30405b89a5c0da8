#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/read/defaults.hpp"
#include "scenarios/rows/row_parts.hpp"

namespace stepsim {

RowScenario::RowScenario(const std::string& id) : document(parse_document("{}", id)) {}

void RowScenario::set(std::string_view path, std::string_view value) {
  document.set(path, value);
}

void RowScenario::set(std::string_view path, double whole) {
  document.set(path, fmt::format("{:.0f}", whole));
}

Document RowScenario::resolved(const RowCatalog& catalog) const {
  Document copy = parse_document(document.canonical(), document.file());
  lay_defaults(catalog.data, copy);
  return copy;
}

void name_defaults(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  const Document resolved = made.resolved(catalog);
  for (const Recipe* recipe : made.recipes)
    if (const auto taken = resolved.taken_from("recipe " + recipe->name); !taken.empty())
      made.assume(fmt::format("as {} have it: {}", recipe->title, fmt::join(taken, "; ")));
  const auto filled_in = [&](const std::string& path) {
    return resolved.origin_of(path) == "stack " + made.stack;
  };
  if (has_experts(row) && filled_in("strategy.moe.skew"))
    made.assume(fmt::format("tokens of experts that differ by {} of their mean",
                            *resolved.peek("strategy.moe.skew")));
  if (filled_in("strategy.lora.rank"))
    made.assume(fmt::format("adapters of rank {}", *resolved.peek("strategy.lora.rank")));
  if (filled_in("strategy.lora.targets")) {
    const std::string targets = *resolved.peek("strategy.lora.targets");
    made.assume(
        fmt::format("adapters beside {} matrices", targets == "linear" ? "dense" : targets));
  }
}

// Quotes the text as YAML needs it.
std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text)
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
  return result + '"';
}

}  // namespace stepsim
