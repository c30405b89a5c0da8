#include "cli/result.hpp"

#include <fmt/format.h>

#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "cli/taken_text.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/resolved.hpp"
#include "sim/base/error.hpp"
#include "sim/run_file.hpp"

namespace stepsim {

Records joined(std::initializer_list<Records> lists) {
  Records all;
  for (const Records& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Records head_of(const ResultKind& kind) {
  return {{"result", "what this is", kind.name},
          {"schema", "number of this form", kind.schema},
          {"version", "of stepsim", stepsim_version}};
}

Records result_records(const ResultKind& kind, const Records& asked, const Records& answer) {
  return joined({head_of(kind), asked, answer});
}

void print_result(const ResultKind& kind, const Records& asked, const Records& answer) {
  say("{}", to_json(result_records(kind, asked, answer)));
}

RecordList setting_list(std::span<const Setting> settings) {
  return list_of(settings, [](const Setting& setting) {
    return fmt::format("{}={}", setting.first, setting.second);
  });
}

Records asked_records(const Scenario& scenario, const AskedScenario& asked) {
  std::vector<std::string> guesses;
  for (const NamedConstant& constant : scenario.constants)
    if (constant.grade == Grade::guess) guesses.push_back(constant.name);
  return {{"scenario", "what was asked",
           Records{{"title", "its name", scenario.name},
                   {"source", "the path or name that was given", asked.source},
                   {"set", "what --set changed, as KEY=VALUE", setting_list(asked.settings)},
                   {"resolved", "the scenario with all that was set: YAML that can be run again",
                    scenario_yaml(scenario)}}},
          {"notes", "what was read and makes no difference, and what is unusual",
           list_of(scenario.notes)},
          taken_record(scenario),
          not_modelled_record(scenario),
          assumption_record(scenario.assumptions),
          {"guesses", "constants behind this that are guesses", list_of(guesses)}};
}

std::optional<Scenario> scenario_if_sound(const Catalogue& data, const AskedScenario& asked) {
  try {
    return load_scenario(data, asked.source, asked.settings);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::optional<Records> asked_of(const Catalogue& data, const AskedScenario& asked) {
  const auto scenario = scenario_if_sound(data, asked);
  return scenario ? std::optional(asked_records(*scenario, asked)) : std::nullopt;
}

Records asked_sample() {
  Scenario scenario;
  scenario.assumptions.emplace_back();
  scenario.unmodelled.emplace_back();
  return asked_records(scenario, {});
}

Records constant_records(const NamedConstant& c) {
  return {{"name", "constant", c.name},
          {"value", "what it is taken to be, SI", c.value},
          {"low", "the least it may be", c.low},
          {"high", "the most it may be", c.high},
          {"unit", "of the three", si_unit(c.dimension)},
          {"grade", "how far it can be trusted", to_text(c.grade)}};
}

RecordList mover_list(const std::vector<Mover>& movers, std::string_view low_key,
                      std::string_view high_key) {
  return list_of(movers, [&](const Mover& mover) -> Records {
    return {{"constant", "constant", mover.constant.name},
            {"grade", "how far it can be trusted", to_text(mover.constant.grade)},
            {low_key, "with the constant at its low end", Seconds{mover.at_low}},
            {high_key, "with the constant at its high end", Seconds{mover.at_high}}};
  });
}

std::string movers_table(const std::vector<Mover>& movers, std::string_view what,
                         std::string_view figure, std::string (*text)(Seconds)) {
  if (movers.empty()) return "";
  TextTable table{{fmt::format("{} is moved most by", what), " stated", " from", " to", "grade",
                   std::string(figure)}};
  for (const auto& [c, at_low, at_high] : movers)
    table.rows.push_back({c.name, value_text(c, c.value), value_text(c, c.low),
                          value_text(c, c.high), std::string(to_text(c.grade)),
                          fmt::format("{} to {}", text({at_low}), text({at_high}))});
  return "\n" + render(table);
}

}  // namespace stepsim
