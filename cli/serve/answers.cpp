#include "cli/serve/answers.hpp"

#include <fmt/format.h>

#include <deque>

#include "analysis/studies/predict/rank_memory.hpp"
#include "cli/explain_output.hpp"
#include "cli/run_output.hpp"
#include "cli/runs.hpp"
#include "cli/scenarios.hpp"
#include "cli/screen.hpp"
#include "cli/serve/offered.hpp"
#include "cli/taken_text.hpp"
#include "scenarios/foreign/door/opened_source.hpp"
#include "scenarios/keys/key_pages.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/defaults.hpp"
#include "scenarios/read/entries.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {
namespace {

// The scenario that an empty page shows: its choices say the rest.
constexpr std::string_view first_scenario = "serve";

NamedStep named_step(const Serving& serving, const Question& question,
                     const std::optional<AskedScenario>& asked) {
  if (!asked) throw UserError("the question names no scenario");
  require_served(serving, question, *asked);
  NamedStep step{asked->source, asked->source, asked->settings,
                 load_scenario(serving.fence.data, asked->source, asked->settings)};
  if (step.scenario.grpo) throw UserError(std::string(no_grpo));
  for (const auto& [key, value] : asked->settings) step.label += fmt::format(" {}={}", key, value);
  return step;
}

struct TwoSteps {
  NamedStep a, b;
};

TwoSteps two_steps(const Serving& serving, const Question& question) {
  return {named_step(serving, question, question.a), named_step(serving, question, question.b)};
}

Explanation gap_of(const Serving& serving, const TwoSteps& steps) {
  ExplainOptions study;
  study.data = serving.fence.data;
  study.player = serving.fence.player;
  study.most_draws = 0;
  return explain(steps.a, steps.b, study);
}

std::string command_of(const NamedStep& step) {
  std::string command = "stepsim run " + shell_word(step.source);
  for (const auto& [key, value] : step.settings)
    command += " --set " + shell_word(fmt::format("{}={}", key, value));
  return command;
}

std::vector<std::string> machines(const Catalogue& data) {
  std::vector<std::string> names = names_on(data, node_shelf);
  append(names, names_on(data, cluster_shelf));
  return names;
}

// Returns the keys that name entries of the catalogue.
Records names_records(const Catalogue& data) {
  const auto names = [&](std::string_view key, const std::vector<std::string>& list) {
    return Record(key, "names that it may say", list_of(list));
  };
  return {names("model", names_on(data, model_shelf)),
          names("stack", names_on(data, stack_shelf)),
          names("recipe", names_on(data, recipe_shelf)),
          names("cluster.node", machines(data)),
          names("cluster.network", names_on(data, network_shelf)),
          names("cluster.processor", names_on(data, processor_shelf)),
          names("strategy.optimizer", names_on(data, optimizer_shelf)),
          names("strategy.precision", names_on(data, precision_shelf)),
          names("strategy.lora.quantised", names_on(data, format_shelf)),
          names("strategy.lora.method", names_on(data, adapter_shelf))};
}

// Lists what a training step may be told; not what was observed of it, nor what only GRPO has.
RecordList keys_list() {
  RecordList list;
  for (const KeyGroup& group : key_groups()) {
    if (group.block == "measured" || group.block.find(' ') != std::string::npos) continue;
    for (const KeyRow& row : group.rows)
      list.items.emplace_back("", "",
                              Records{{"key", "its name", group.path(row)},
                                      {"kind", "of its value", row.kind},
                                      {"words", "that it may say", list_of(texts_of(row.words))},
                                      {"allowed", "words or limits", row.allowed},
                                      {"default", "when nobody says it", row.usual},
                                      {"sentence", "what it is", row.sentence}});
  }
  return list;
}

RecordList resolved_list(const Scenario& scenario) {
  return list_of(resolved_keys(scenario), [](const ResolvedKey& key) -> Records {
    return {{"key", "its name", key.path()},
            {"value", "as a file would say it", value_text(key)},
            {"from", "who said so", origin_text(key)}};
  });
}

struct FileRole {
  std::string_view word;
  std::string title;
};

// Returns a file's role as the readers of the command line tell it.
FileRole role_of(const std::string& name) {
  for (const std::string_view script : {".py", ".ipynb", ".sh"})
    if (name.ends_with(script)) return {"source", "a script"};
  const Document content = open_document(name);
  if (content.root().has("architectures") || content.root().has("model_type"))
    return {"model", "a model's config.json"};
  const SourceKind& kind = kind_of(content, "");
  return {kind.name == "deepspeed" ? "deepspeed" : "source", std::string(kind.title)};
}

}  // namespace

void put_files(const Serving& serving, const Question& question) {
  if (!question.files.empty() && !serving.fence.shut_in)
    throw UserError(fmt::format("no file is taken: {}", no_landlock));
  for (const PostedFile& file : question.files) write_file(file.name, file.text);
}

std::string first_page(const Serving& serving, const Question&) {
  const Offered offered = read_offered(serving);
  return serve_html(
      "Try settings of a training step",
      {{"first", "what an empty page shows", first_scenario},
       {"sources", "scenarios to begin with", list_of(offered.sources)},
       {"left_out", "files of the folders that cannot be begun with, and why",
        list_of(mapped(offered.left_out, [](const Problem& each) { return to_text(each); }))},
       {"names", "of the catalogue", names_records(serving.fence.data)},
       {"keys", "of a scenario", keys_list()}});
}

std::string step_answer(const Serving& serving, const Question& question) {
  const NamedStep step = named_step(serving, question, question.a);
  const Scenario& scenario = step.scenario;
  RunExtras extras;
  Prediction prediction = predict(scenario, Kept::figures, {.player = serving.fence.player});
  prediction.memory.reserved = reserved_in_order(scenario, prediction.memory);
  extras.allocated = logged_bytes(scenario);
  if (question.interval)
    extras.interval = interval_of_run({.data = serving.fence.data,
                                       .scenario = step.source,
                                       .settings = step.settings,
                                       .samples = usual_samples(prediction.operations),
                                       .stated = stated_figures(prediction)});
  return to_json({{"run", "as `stepsim run --json` prints it",
                   result_records(run_kind, asked_records(scenario, {step.source, step.settings}),
                                  run_records(scenario, prediction, extras))},
                  {"subtitle", "model, machine and stack", place_text(scenario)},
                  {"gpus", "of all nodes", scenario.cluster.ranks()},
                  {"command", "that says the same", command_of(step)},
                  {"keys", "with their values", resolved_list(scenario)}});
}

std::string gap_answer(const Serving& serving, const Question& question) {
  const TwoSteps steps = two_steps(serving, question);
  const auto asked = [](const NamedStep& step) {
    return asked_records(step.scenario, {step.source, step.settings});
  };
  return to_json(result_records(explain_kind,
                                {{"asked_a", "what was asked of A", asked(steps.a)},
                                 {"asked_b", "what was asked of B", asked(steps.b)}},
                                explanation_records(gap_of(serving, steps))));
}

std::string file_answer(const Serving&, const Question& question) {
  return to_json(
      {{"files", "in their order", list_of(question.files, [](const PostedFile& file) -> Records {
          const FileRole role = role_of(file.name);
          return {{"name", "of the file", file.name},
                  {"role", "model, deepspeed or source", role.word},
                  {"title", "what it is", role.title}};
        })}});
}

std::string report_page(const Serving& serving, const Question& question) {
  std::optional<TwoSteps> two;
  if (question.b) two = two_steps(serving, question);
  std::vector<NamedStep> steps{two ? two->a : named_step(serving, question, question.a)};
  if (two) steps.push_back(two->b);
  std::deque<Run> runs;  // the page points at them
  Page page{.title = {}, .steps = {}, .gap = {}, .claims = {}, .sweep = {}};
  for (const NamedStep& step : steps) {
    page.title += (page.title.empty() ? "" : " and ") + step.label;
    runs.push_back(
        load_run({serving.fence.data, {}}, step.source, step.settings, serving.fence.player));
    page.steps.push_back({.label = step.label, .run = &runs.back()});
    add_taken(step.scenario, page.steps.back());
  }
  if (two) page.gap = page_gap(gap_of(serving, *two));
  return page_html(page);
}

}  // namespace stepsim
