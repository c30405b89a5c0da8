#include "analysis/studies/outcome/next_steps.hpp"

#include <algorithm>

#include "analysis/studies/outcome/file_words.hpp"
#include "analysis/studies/outcome/known_changes.hpp"
#include "analysis/studies/predict/replayed_step.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// At most so many operations are replayed in all, which takes a second or two. A GRPO job counts as
// a long step, and as a longer one where its engines have much to do.
constexpr std::size_t most_operations = 400'000, operations_of_grpo = 50'000;
constexpr std::size_t events_of_an_operation = 4, fewest_tried = 4;

std::vector<Setting> with(const NextStepQuestion& question, const std::vector<Setting>& change) {
  std::vector<Setting> settings = question.settings;
  settings.insert(settings.end(), change.begin(), change.end());
  return settings;
}

// Evaluates the scenario with the change. It is impossible where the scenario has no place for it.
Outcome outcome_with(const NextStepQuestion& question, const std::vector<Setting>& change) {
  try {
    return evaluate(question.data, question.source, with(question, change));
  } catch (const UserError& error) {
    return impossible(error.what());
  }
}

FileWords words_of(const NextStepQuestion& question) {
  return {question.data, question.source, question.settings, question.scenario};
}

std::vector<NextStep> tried(const NextStepQuestion& question,
                            const std::vector<std::vector<Setting>>& changes) {
  const FileWords words = words_of(question);
  Tasks<Outcome> tasks;
  tasks.reserve(changes.size());
  for (const std::vector<Setting>& change : changes)
    tasks.emplace_back([&] { return outcome_with(question, change); });
  std::vector<Outcome> outcomes = in_workers(tasks, question.workers, question.progress);
  std::vector<NextStep> steps;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const double needed = outcomes[i].of("peak_memory").value_or(0);
    steps.push_back(
        {words.text(changes[i]), changes[i], 0, needed, Fit::fits, std::move(outcomes[i])});
  }
  return steps;
}

double rate_of(const NextStep& step) {
  return step.outcome.of("tokens_per_second_per_gpu").value_or(0);
}

void sort_by_rate(std::vector<NextStep>& steps) {
  std::ranges::stable_sort(
      steps, [](const NextStep& a, const NextStep& b) { return rate_of(a) > rate_of(b); });
}

std::vector<NextStep> best_of_each_key(std::vector<NextStep> steps, std::size_t most) {
  std::vector<NextStep> best;
  for (NextStep& step : steps) {
    const bool said = std::ranges::any_of(best, [&](const NextStep& other) {
      return other.settings.front().first == step.settings.front().first;
    });
    if (!said && best.size() < most) best.push_back(std::move(step));
  }
  return best;
}

std::vector<NextStep> tried(const NextStepQuestion& question, const std::vector<Remedy>& remedies) {
  std::vector<NextStep> steps = tried(question, mapped(remedies, &Remedy::settings));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].change = words_of(question).text(remedies[i].settings, remedies[i].rows);
    steps[i].fit = remedies[i].fit;
    steps[i].needed = remedies[i].needed;
  }
  std::erase_if(steps, [](const NextStep& step) { return !step.outcome.feasible; });
  sort_by_rate(steps);
  return steps;
}

// Returns the changes that the scenario has a place for.
std::vector<std::vector<Setting>> possible_changes(const NextStepQuestion& question,
                                                   std::vector<std::vector<Setting>> changes) {
  std::erase_if(changes, [&](const std::vector<Setting>& change) {
    try {
      load_scenario(question.data, question.source, with(question, change));
      return false;
    } catch (const UserError&) {
      return true;
    }
  });
  return changes;
}

std::size_t steps_to_try(const NextStepQuestion& question) {
  const std::size_t each =
      question.scenario.grpo
          ? std::max(operations_of_grpo, question.events / events_of_an_operation)
          : count_operations(step_input(question.scenario));
  return std::max(fewest_tried, most_operations / std::max<std::size_t>(each, 1));
}

}  // namespace

FasterSteps faster_steps(const NextStepQuestion& question, std::size_t most) {
  const FileWords words = words_of(question);
  std::vector<std::vector<Setting>> changes =
      mapped(same_job_changes(question.data, question.scenario),
             [&](const std::vector<Setting>& change) { return words.of(change); });
  std::erase_if(changes, [](const std::vector<Setting>& change) { return change.empty(); });
  changes = possible_changes(question, std::move(changes));
  const std::size_t allowed =
      question.all ? changes.size() : std::min(changes.size(), steps_to_try(question));
  FasterSteps result{{}, allowed, changes.size() - allowed, true};
  changes.resize(allowed);
  if (!question.stated) changes.emplace_back();  // the scenario as it is
  std::vector<NextStep> steps = tried(question, changes);
  if (question.stated) steps.push_back({.change = {}, .settings = {}, .outcome = *question.stated});
  std::erase_if(steps, [](const NextStep& step) { return !step.outcome.feasible; });
  const auto own =
      std::ranges::find_if(steps, [](const NextStep& step) { return step.settings.empty(); });
  if (own == steps.end()) return {{}, 0, 0, false};
  const double now = rate_of(*own);
  for (NextStep& step : steps) step.gain = rate_of(step) / now - 1;
  std::erase_if(steps, [](const NextStep& step) { return step.gain <= worth_showing; });
  sort_by_rate(steps);
  result.steps = best_of_each_key(std::move(steps), most);
  return result;
}

FittingSteps fitting_steps(const NextStepQuestion& question) {
  const RemedyQuestion asked{question.data,     question.source,  question.settings,
                             question.scenario, question.workers, question.progress};
  FittingSteps result;
  result.single = tried(question, remedies(asked));
  if (result.single.empty()) result.pairs = tried(question, paired_remedies(asked));
  result.nodes = tried(question, more_nodes(asked));
  return result;
}

}  // namespace stepsim
