// `diff` says what two scenarios say differently, and where.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/scenarios.hpp"
#include "cli/screen.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

struct FigurePair {
  std::string name;
  std::optional<double> a, b;
  Dimension dimension = Dimension::ratio;
};

struct Difference {
  std::vector<KeyPair> keys;
  std::vector<FigurePair> model, constants;
};

std::vector<FigurePair> model_figures(const Model& model) {
  const auto count = [](std::int64_t value) { return static_cast<double>(value); };
  std::vector<FigurePair> figures{{"parameters", count(count_parameters(model).total()), {}},
                                  {"layers", count(model.layers), {}},
                                  {"hidden", count(model.hidden), {}},
                                  {"heads", count(model.attention.heads), {}},
                                  {"key-value heads", count(model.attention.kv_heads), {}},
                                  {"vocabulary", count(model.vocabulary), {}}};
  if (model.experts) figures.push_back({"experts", count(model.experts->count), {}});
  return figures;
}

std::vector<FigurePair> constant_figures(const Scenario& scenario) {
  std::vector<FigurePair> figures;
  for (const NamedConstant& constant : scenario.constants)
    if (!constant.name.starts_with("scenario."))
      figures.push_back({constant.name, constant.value, {}, constant.dimension});
  return figures;
}

// Returns the figures that differ, by name, those of A first.
std::vector<FigurePair> differing(std::vector<FigurePair> a, const std::vector<FigurePair>& b) {
  for (const FigurePair& other : b) {
    const auto place = std::ranges::find(a, other.name, &FigurePair::name);
    if (place == a.end())
      a.push_back({other.name, {}, other.a, other.dimension});
    else
      place->b = other.a;
  }
  std::erase_if(a, [](const FigurePair& each) { return each.a == each.b; });
  return a;
}

std::string side(const std::optional<ResolvedKey>& key) {
  return key ? fmt::format("{} ({})", value_text(*key), origin_text(*key)) : "no such key";
}

std::string side(const FigurePair& pair, const std::optional<double>& value, bool plain) {
  if (!value) return "none";
  return plain ? number_text(*value) : to_text(*value, pair.dimension);
}

std::string figures_text(std::string_view heading, const std::vector<FigurePair>& pairs,
                         bool plain) {
  if (pairs.empty()) return "";
  TextTable table{{std::string(heading), " A", " B"}};
  for (const FigurePair& pair : pairs)
    table.rows.push_back({pair.name, side(pair, pair.a, plain), side(pair, pair.b, plain)});
  return "\n" + render(table);
}

std::string text_of(const Difference& difference) {
  if (difference.keys.empty() && difference.model.empty() && difference.constants.empty())
    return "\nno difference\n";
  std::string text;
  if (!difference.keys.empty()) {
    TextTable table{{"key", "A", "B"}};
    for (const KeyPair& pair : difference.keys)
      table.rows.push_back({pair.either().path(), side(pair.a), side(pair.b)});
    text += "\n" + render(table);
  }
  return text + figures_text("model", difference.model, true) +
         figures_text("constant", difference.constants, false);
}

RecordList figure_list(const std::vector<FigurePair>& pairs) {
  return list_of(pairs, [](const FigurePair& pair) -> Records {
    return {{"name", "of the figure", pair.name},
            {"a", "in A, SI", pair.a},
            {"b", "in B, SI", pair.b},
            {"unit", "of both", si_unit(pair.dimension)}};
  });
}

Records records_of(const std::string& a, const std::string& b, const Difference& difference) {
  const auto side = [](const std::optional<ResolvedKey>& key) {
    return key ? std::optional(value_records(*key)) : std::nullopt;
  };
  const auto pair = [&](const KeyPair& each) -> Records {
    return {{"key", "of the scenario", each.either().path()},
            {"a", "in A; null: A has no such key", side(each.a)},
            {"b", "in B; null: B has no such key", side(each.b)}};
  };
  return {{"a", "as it was called", a},
          {"b", "as it was called, and what was set", b},
          {"keys", "whose values differ", list_of(difference.keys, pair)},
          {"model", "figures that differ", figure_list(difference.model)},
          {"constants", "that differ", figure_list(difference.constants)}};
}

}  // namespace

Records diff_sample() {
  Difference difference;
  const ResolvedKey key = resolved_keys(Scenario{}).front();
  difference.keys = {{key, key}};
  difference.model = difference.constants = {FigurePair{}};
  return records_of("", "", difference);
}

int diff_command(const CommandLine& line) {
  const auto options = parse("diff", line.words);
  if (!options) return exit_code::yes;
  const std::vector<Setting> changes = settings_of(*options);
  if (options->words.size() == 1 && changes.empty())
    throw UserError("compared with what? name a second scenario, or change this one with --set");
  const std::string& first = options->words.front();
  std::string second = options->words.back();
  const Scenario a = load_scenario(line.data, first);
  const Scenario b = load_scenario(line.data, second, changes);
  for (const auto& [key, value] : changes) second += fmt::format(" {}={}", key, value);
  const Difference difference{differing_keys(a, b),
                              differing(model_figures(a.model), model_figures(b.model)),
                              differing(constant_figures(a), constant_figures(b))};
  if (options->has("json"))
    print_result(
        diff_kind,
        {{"asked_a", "what was asked of A", asked_records(a, {first})},
         {"asked_b", "what was asked of B", asked_records(b, {options->words.back(), changes})}},
        records_of(first, second, difference));
  else
    say("A  {}\nB  {}\n{}", first, second, text_of(difference));
  return exit_code::yes;
}

}  // namespace stepsim
