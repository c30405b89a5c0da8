#include "cli/taken_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/studies/predict/footprint_text.hpp"
#include "cli/screen.hpp"
#include "scenarios/read/taken.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::size_t label_width = 13;

std::string gigabytes(double bytes) {
  return to_text(Bytes{bytes});
}

std::string effect_text(const UnmodelledKey& key) {
  return key.why.empty() ? "the result is without it" : key.why;
}

std::string moved_text(const OpenValue& value) {
  if (!value.tried()) return "";
  if (value.rate) return fmt::format("{:.0f} to {:.0f} tok/s/GPU", value.low, value.high);
  return fmt::format("step {} to {}", to_text(Seconds{value.low}), to_text(Seconds{value.high}));
}

std::string step_text(const NextStep& step) {
  return fmt::format("{} ({} a step, {} tok/s, {})", step.change,
                     to_text(Seconds{step.outcome.of("step_time").value_or(0)}),
                     signed_percent(step.gain),
                     gigabytes(step.outcome.of("peak_memory").value_or(0)));
}

// Returns which run the constants are anchored on, or nothing.
std::string anchored_on(const Scenario& scenario) {
  const auto found = std::ranges::find(scenario.assumptions, anchored_constants, &Assumption::what);
  return found == scenario.assumptions.end() ? "" : found->taken;
}

}  // namespace

std::string on_one_screen(const std::function<std::string(std::size_t most)>& make,
                          std::size_t head_lines) {
  constexpr std::size_t screen_lines = 40;
  std::string text;
  for (std::size_t most = 6; most > 0; --most) {
    text = make(most);
    if (head_lines + static_cast<std::size_t>(std::ranges::count(text, '\n')) <= screen_lines)
      break;
  }
  return text;
}

std::string within_screen(const TextTable& table) {
  return render(table, std::min(line_width(), answer_width));
}

std::string labelled(std::string_view label, const std::string& text) {
  return fmt::format("{:<{}}{}\n", label, label_width,
                     wrap(text, std::min(line_width(), answer_width), label_width));
}

std::string_view device_tool(const Scenario& scenario) {
  return scenario.cluster.gpu.vendor == "amd" ? "rocm-smi" : "nvidia-smi";
}

std::string title_line(const Scenario& scenario) {
  const std::uint32_t nodes = scenario.cluster.nodes, each = scenario.cluster.gpus_per_node(),
                      ranks = scenario.cluster.ranks();
  const bool part = each != scenario.cluster.node.count(PartKind::gpu);
  std::string machine = nodes > 1 ? fmt::format("{} x ", nodes) : "";
  machine += scenario.cluster.node.name;
  if (part)
    machine += nodes > 1 ? fmt::format(" ({} GPUs of each)", each)
                         : fmt::format(" ({} of its GPUs)", ranks);
  return wrap(fmt::format("{}: {} on {}", scenario.name, scenario.model.name, machine),
              std::min(line_width(), answer_width), 0) +
         "\n";
}

std::string answer_sentence(const Scenario& scenario, const Footprint& memory,
                            const std::string& time, const std::vector<OtherVerdict>& others) {
  const bool fits = memory.fit() != Fit::oom;
  const std::string colour = coloured(verdict_text(memory), fits ? Colour::good : Colour::bad);
  if (fits)
    return fmt::format("{} a step; {} of {} usable: {}", time, gigabytes(memory.needed()),
                       gigabytes(memory.capacity), colour);
  const bool full = scenario.job.fill < 1 || holds(unsaid_keys(scenario), "job.fill");
  return fmt::format("{}{}: {} of {} usable{}; a step would take {}",
                     others.empty() ? "" : "as assumed, it ", colour, gigabytes(memory.needed()),
                     gigabytes(memory.capacity), full ? ", for full rows" : "", time);
}

std::string others_text(const Footprint& memory, const std::vector<OtherVerdict>& others) {
  std::string text;
  for (const OtherVerdict& each : others)
    text +=
        labelled("it hangs on",
                 fmt::format("the {}, which no file says: {} with {}, {} with {} ({})", each.key,
                             gigabytes(memory.needed()), each.taken, gigabytes(each.needed),
                             each.other, each.fit == Fit::tight ? "fits, but tightly" : "fits"));
  return text;
}

std::string first_change(const std::optional<FasterSteps>& faster,
                         const std::optional<FittingSteps>& fitting) {
  if (faster && faster->fits && !faster->steps.empty())
    return labelled("change first", step_text(faster->steps.front()));
  if (!fitting) return "";
  for (const auto* steps : {&fitting->single, &fitting->pairs, &fitting->nodes})
    if (!steps->empty())
      return labelled(
          "change first",
          fmt::format("{}: it fits with {}, {} a step", steps->front().change,
                      gigabytes(steps->front().needed),
                      to_text(Seconds{steps->front().outcome.of("step_time").value_or(0)})));
  return "";
}

std::string taken_paragraph(const Scenario& scenario) {
  const std::string anchored = anchored_on(scenario);
  return (anchored.empty()
              ? ""
              : labelled("anchored", anchored.substr(std::string_view("anchored ").size()))) +
         labelled("taken", taken_line(taken_of(scenario)));
}

std::string not_modelled_paragraph(const Scenario& scenario) {
  const auto texts = mapped(scenario.unmodelled, [](const UnmodelledKey& key) {
    return fmt::format("{} ({})", readable(key.key), readable(effect_text(key)));
  });
  return texts.empty() ? "" : labelled("not modelled", fmt::format("{}", fmt::join(texts, "; ")));
}

std::string open_values_table(const std::vector<OpenValue>& values, std::size_t most) {
  std::vector<OpenValue> shown = values;
  std::erase_if(shown, [](const OpenValue& each) {
    return each.swing <= -2 || each.assumption.what == anchored_constants;  // no assumptions
  });
  if (shown.empty()) return "";
  const std::size_t more = shown.size() - std::min(shown.size(), most);
  shown.resize(shown.size() - more);
  const bool tried = std::ranges::any_of(shown, &OpenValue::tried);
  TextTable table{{"assumed", "taken"}};
  if (tried) table.columns.emplace_back("so the answer is");
  table.columns.emplace_back("change it with");
  for (const OpenValue& each : shown) {
    std::vector<std::string> row{each.assumption.what, each.assumption.taken};
    if (tried) row.push_back(moved_text(each));
    row.push_back(each.assumption.change);
    table.rows.push_back(std::move(row));
  }
  return "\n" + within_screen(table) + (more > 0 ? fmt::format("and {} more: --full\n", more) : "");
}

void add_taken(const Scenario& scenario, PageStep& step) {
  const std::string anchored = anchored_on(scenario);
  step.taken = (anchored.empty() ? "" : anchored + "; ") + taken_line(taken_of(scenario));
  step.missing = mapped(scenario.unmodelled, [](const UnmodelledKey& key) {
    return fmt::format("{} ({})", key.key, effect_text(key));
  });
}

Record taken_record(const Scenario& scenario) {
  Records parts;
  for (const Taken& part : taken_of(scenario))
    parts.emplace_back(part.key, part.meaning, part.text);
  parts.emplace_back("unsaid", "keys that no file says: defaults and assumptions, marked *",
                     list_of(unsaid_keys(scenario)));
  return {"taken", "what the scenario was read as, in the field's words", parts};
}

Record not_modelled_record(const Scenario& scenario) {
  return {"not_modelled", "what time or memory is without",
          list_of(scenario.unmodelled, [](const UnmodelledKey& each) -> Records {
            return {
                {"key", "of the file", each.key},
                {"value", "there", each.value},
                {"effect", "which way the real run differs, and by how much", effect_text(each)},
                {"needs_memory", "what is counted is too little", each.needs_memory}};
          })};
}

Record others_record(const std::vector<OtherVerdict>& others) {
  return {"verdict_hangs_on", "what no file says, and with which another verdict holds",
          list_of(others, [](const OtherVerdict& each) -> Records {
            return {{"what", "is not said", each.key},
                    {"taken", "instead", each.taken},
                    {"other", "what others choose", each.other},
                    {"peak_memory_bytes", "needed then", Bytes{each.needed}},
                    {"verdict", "then", to_text(each.fit)}};
          })};
}

}  // namespace stepsim
