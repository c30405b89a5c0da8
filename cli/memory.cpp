// `memory`: does a scenario fit, and if not, what would make it fit.
#include <fmt/format.h>

#include <array>

#include "analysis/json.hpp"
#include "analysis/studies/footprint.hpp"
#include "analysis/table.hpp"
#include "cli/command.hpp"
#include "cli/grpo.hpp"
#include "cli/options.hpp"
#include "sim/error.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs{
    OptionSpec{"set", "KEY=VALUE",
               "instead of what the file says, such as strategy.zero=2; repeats", 0, true},
    OptionSpec{"json", "", "for machines"}};
constexpr Usage usage{
    "stepsim memory SCENARIO [--json]",
    "Adds up what a scenario needs in device memory, without timing it. When it does not fit, each "
    "single change that would make it fit is computed and printed. Exit code 1: it does not fit.",
    option_specs, "  stepsim memory scenarios/template.yaml\n", 1};

std::string text_of(const Scenario& scenario, const Footprint& f,
                    const std::vector<Remedy>& changes) {
  TextTable table{{"on each " + scenario.cluster.gpu.title, "size"},
                  {Align::left, Align::right},
                  {{"parameters, gradients, optimizer", to_text(Bytes{f.resident})}}};
  for (const auto& [name, bytes] : f.peak.classes)
    table.rows.push_back({name, to_text(Bytes{bytes})});
  table.rows.push_back({"allocator slack", to_text(Bytes{f.slack})});
  table.rows.push_back({"needed", to_text(Bytes{f.needed()})});
  table.rows.push_back({"usable", to_text(Bytes{f.capacity})});
  std::string text = fmt::format("{}\n\n{}\n", scenario.name, render(table));
  text += fmt::format("{}; the peak is in {}, at {}\n",
                      f.fit() == Fit::oom     ? fmt::format("does not fit: {} too much",
                                                            to_text(Bytes{f.needed() - f.capacity}))
                      : f.fit() == Fit::tight ? "fits, but tightly"
                                              : "fits",
                      f.peak.phase, f.peak.name);
  if (f.fit() != Fit::oom) return text;
  if (changes.empty()) return text + "no single change that is known here makes it fit\n";
  TextTable ways{{"what would make it fit", "needed", "verdict"},
                 {Align::left, Align::right, Align::left},
                 {}};
  for (const Remedy& remedy : changes)
    ways.rows.push_back({remedy.change, to_text(Bytes{remedy.footprint.needed()}),
                         std::string(to_text(remedy.footprint.fit()))});
  return text + "\n" + render(ways);
}

std::string json_of(const Footprint& f, const std::vector<Remedy>& changes) {
  JsonWriter json;
  json.begin_object()
      .member("peak_memory_bytes", f.needed())
      .member("capacity_bytes", f.capacity)
      .member("verdict", to_text(f.fit()))
      .member("phase", f.peak.phase)
      .member("operation", f.peak.name);
  json.key("classes").begin_object().member("resident", f.resident);
  for (const auto& [name, bytes] : f.peak.classes) json.member(name, bytes);
  json.member("allocator_slack", f.slack).end_object().key("remedies").begin_array();
  for (const Remedy& remedy : changes)
    json.begin_object()
        .member("change", remedy.change)
        .member("peak_memory_bytes", remedy.footprint.needed())
        .member("verdict", to_text(remedy.footprint.fit()))
        .end_object();
  json.end_array().end_object();
  return json.take();
}

}  // namespace

int memory_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty()) throw UserError(fmt::format("which scenario? usage: {}", usage.call));
  const Scenario scenario = load_scenario(line.data, options->words.front(), settings_of(*options));
  if (scenario.grpo) {
    const GrpoMemory memory = grpo_memory(scenario);
    fmt::print(
        "{}", options->has("json") ? grpo_memory_json(memory) : grpo_memory_text(scenario, memory));
    return memory.failure ? exit_code::no : exit_code::yes;
  }
  const Footprint needs = footprint(scenario);
  const bool fits = needs.fit() != Fit::oom;
  const std::vector<Remedy> changes = fits ? std::vector<Remedy>{} : remedies(scenario);
  fmt::print("{}",
             options->has("json") ? json_of(needs, changes) : text_of(scenario, needs, changes));
  return fits ? exit_code::yes : exit_code::no;
}

}  // namespace stepsim
