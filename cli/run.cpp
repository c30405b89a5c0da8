// `run` predicts one step of a scenario.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/studies/grpo/grpo_trace.hpp"
#include "analysis/studies/predict/rank_memory.hpp"
#include "analysis/studies/predict/replayed_step.hpp"
#include "cli/beside_text.hpp"
#include "cli/engine_options.hpp"
#include "cli/grpo.hpp"
#include "cli/next_steps_text.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "cli/run_output.hpp"
#include "cli/runs.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "cli/taken_text.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/run_file.hpp"

namespace stepsim {
namespace {

constexpr std::uint32_t usual_movers = 6;

CauseSet free_causes(const Options& options) {
  const std::vector<std::string> names(cause_names.begin(), cause_names.end());
  CauseSet free;
  for (const auto& [option, word] : options.values) {
    if (option != "ideal") continue;
    const auto place = std::ranges::find(names, word);
    if (place == names.end())
      throw UserError(fmt::format("--ideal: no cause \"{}\"{}; expected {}", word,
                                  did_you_mean(word, names), one_of(names)));
    free.add(static_cast<Cause>(place - names.begin()));
  }
  return free;
}

// Returns nothing where it is not asked for.
std::optional<FasterSteps> faster_of(const Options& options, const NextStepQuestion& question) {
  constexpr std::uint32_t usual = 3, most = 100;
  const bool person = !options.has("json") && !options.has("brief") && !options.has("ideal");
  const bool wanted = person || options.has("changes");
  const auto shown = count_of(options, "faster", 0, most).value_or(wanted ? usual : 0);
  if (shown == 0) return std::nullopt;
  if (options.has("ideal"))
    throw UserError("--faster: a step with free causes is nothing to change; leave out --ideal");
  return faster_steps(question, shown);
}

// Changes would make the step faster, or else make it fit.
struct Changes {
  std::optional<FasterSteps> faster{};
  std::optional<FittingSteps> fitting{};
};

Changes changes_of(const Options& options, const NextStepQuestion& question) {
  auto faster = faster_of(options, question);
  if (!faster || faster->fits) return {.faster = std::move(faster)};
  return {.fitting = fitting_steps(question)};
}

// Finds what stands beside the prediction. `operations` returns how many the folded step has.
// `stated` holds its figures, where it was replayed as draws are.
RunExtras extras_of(const CommandLine& line, const Options& options,
                    const std::function<std::size_t()>& operations,
                    const std::optional<StepFigures>& stated, const Cluster& cluster,
                    const std::vector<Setting>& settings) {
  const std::string& source = options.words.front();
  RunExtras extras;
  extras.rates = rates_of(options, line.data, cluster);
  extras.energy = options.has("energy");
  if (const auto log = options.get("beside")) extras.log = load_trainer_log(*log);
  const auto asked = count_of(options, "samples", 0, 4096);
  // A figure without its range says little beside a real run.
  const auto usual = [&] { return extras.log ? draws_at_once : usual_samples(operations()); };
  extras.interval = interval_of_run(
      {.data = line.data,
       .scenario = source,
       .settings = settings,
       .samples = asked ? *asked : usual(),
       .free = free_causes(options),
       .movers = asked ? count_of(options, "movers", 0, 100).value_or(usual_movers) : 0,
       .stated = stated});
  return extras;
}

NextStepQuestion question_of(const CommandLine& line, const Options& options,
                             const Scenario& scenario, const std::vector<Setting>& settings) {
  return {.data = line.data,
          .source = options.words.front(),
          .settings = settings,
          .scenario = scenario,
          .progress = progress_bar("changes"),
          .all = options.has("faster")};
}

void find_changes(const CommandLine& line, const Options& options, const Scenario& scenario,
                  const std::vector<Setting>& settings, RunExtras& extras) {
  Changes changes = changes_of(options, question_of(line, options, scenario, settings));
  extras.asked = options.has("faster");
  extras.faster = std::move(changes.faster);
  extras.fitting = std::move(changes.fitting);
}

int run_grpo_scenario(const CommandLine& line, const Options& options, const Scenario& scenario,
                      const std::vector<Setting>& settings) {
  const auto interval =
      interval_of_run({.data = line.data,
                       .scenario = options.words.front(),
                       .settings = settings,
                       .samples = count_of(options, "samples", 0, 4096).value_or(0)});
  if (options.has("beside"))
    throw UserError("--beside: logs of GRPO jobs are not read, leave it out");
  const Rates rates = rates_of(options, line.data, scenario.cluster);
  const GrpoPrediction prediction = predict_grpo(scenario, {.player = player_of(options)});
  const JobTime time{prediction.step_time, prediction.wall,
                     static_cast<double>(scenario.cluster.ranks()), prediction.trained_per_second};
  if (const auto output = options.get("output"); output && prediction.ran)
    write_run(*output, grpo_trace(scenario, prediction));
  NextStepQuestion question = question_of(line, options, scenario, settings);
  question.stated = outcome_of(scenario, prediction);
  question.events = prediction.run.events;
  const bool brief = options.has("brief"), json = options.has("json");
  if (!brief && !json) print_at_once(grpo_head(scenario, prediction, interval));
  const auto [faster, fitting] = changes_of(options, question);
  if (json) {
    print_result(grpo_kind, asked_records(scenario, {options.words.front(), settings}),
                 joined({grpo_records(scenario, prediction, interval),
                         {cost_record(rates, time), played_record(prediction.played_by),
                          faster_record(faster), fitting_record(fitting)}}));
  } else if (brief) {
    say("{}{}{}{}{}", grpo_brief_text(prediction, interval), cost_text(rates, time),
        taken_in_brief(scenario), faster ? faster_text(*faster) : "",
        fitting ? fitting_text(*fitting) : "");
  } else {
    const bool whole = options.has("full");
    const auto changes = [&, &quicker = faster, &smaller = fitting](std::size_t most) {
      return (quicker ? faster_text(*quicker, most) : "") +
             (smaller ? fitting_text(*smaller, most) : "");
    };
    const std::string money = cost_text(rates, time);
    std::string text = first_change(faster, fitting) + "\n";
    if (whole)
      text += assumptions_text(scenario.assumptions) + grpo_text(scenario, prediction, interval) +
              money + (prediction.ran ? played_text(prediction.played_by) : "") + changes(100);
    else
      text += on_one_screen([&](std::size_t most) {
        return grpo_screen(scenario, prediction, interval, open_values(question), most) + money +
               changes(options.has("faster") ? 100 : most);
      });
    say("{}", text);
  }
  return prediction.memory.failure ? exit_code::no : exit_code::yes;
}

}  // namespace

int run_command(const CommandLine& line) {
  const auto options = parse("run", line.words);
  if (!options) return exit_code::yes;
  require_one_form(*options, {"brief", "json"});
  const std::vector<Setting> settings = settings_of(*options);
  const bool fold = word_of(*options, "fold", "auto", {"auto", "off"}) == "auto";
  const Scenario scenario = load_scenario(line.data, options->words.front(), settings);
  if (const auto output = options->get("output"))
    require_no_input(*output, files_of(line, options->words.front(), scenario));
  if (scenario.grpo) return run_grpo_scenario(line, *options, scenario, settings);
  if (options->has("ideal") && options->has("output"))
    throw UserError("--ideal: a step with free causes is no run to keep; leave out --output");
  const bool kept = options->has("output");
  Prediction prediction = predict(scenario, kept ? Kept::run : Kept::figures,
                                  {.folding = fold ? Folding::automatic : Folding::off,
                                   .free = free_causes(*options),
                                   .player = player_of(*options),
                                   .metered = options->has("energy")});
  if (!options->has("brief"))
    prediction.memory.reserved = reserved_in_order(scenario, prediction.memory);
  const auto folded = [&] {
    return fold ? prediction.operations : count_operations(step_input(scenario));
  };
  RunExtras extras =
      extras_of(line, *options, folded,
                fold && !kept ? std::optional(stated_figures(prediction)) : std::nullopt,
                scenario.cluster, settings);
  if (const auto output = options->get("output")) {
    if (extras.interval) add_interval(prediction.run, *extras.interval);
    write_run(*output, prediction.run);
  }
  if (prediction.memory.fit() == Fit::oom)
    extras.others = other_verdicts(question_of(line, *options, scenario, settings));
  const bool brief = options->has("brief"), json = options->has("json");
  if (!brief && !json) print_at_once(head_text(scenario, prediction, extras));
  find_changes(line, *options, scenario, settings, extras);
  if (json) {
    extras.allocated = logged_bytes(scenario);
    print_result(run_kind, asked_records(scenario, {options->words.front(), settings}),
                 run_records(scenario, prediction, extras));
  } else if (brief) {
    say("{}{}{}", brief_text(scenario, prediction, extras),
        beside_text(extras.log, prediction, extras.interval),
        cost_text(extras.rates, job_time_of(scenario, prediction)));
  } else {
    const bool whole = options->has("full");
    if (!whole) extras.open = open_values(question_of(line, *options, scenario, settings));
    say("{}", whole ? whole_text(scenario, prediction, extras)
                    : screen_text(scenario, prediction, extras));
  }
  return prediction.memory.fit() == Fit::oom ? exit_code::no : exit_code::yes;
}

}  // namespace stepsim
