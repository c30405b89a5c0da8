#include "analysis/studies/outcome/next_steps.hpp"

#include <algorithm>

#include "analysis/studies/grpo/grpo_memory.hpp"
#include "analysis/studies/outcome/known_changes.hpp"
#include "analysis/studies/predict/replayed_step.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// So many operations are replayed in all: a second or two. A GRPO job counts as a long step.
constexpr std::size_t most_operations = 400'000, operations_of_grpo = 50'000;
constexpr std::size_t fewest_tried = 4;
constexpr std::size_t most_pairs = 6;  // that fit are timed

std::vector<Setting> with(const NextStepQuestion& question, const std::vector<Setting>& change) {
  std::vector<Setting> settings = question.settings;
  settings.insert(settings.end(), change.begin(), change.end());
  return settings;
}

// Nothing is known of a change that the scenario has no place for.
Outcome outcome_with(const NextStepQuestion& question, const std::vector<Setting>& change) {
  try {
    return evaluate(question.data, question.source, with(question, change));
  } catch (const UserError& error) {
    return impossible(error.what());
  }
}

std::vector<NextStep> tried(const NextStepQuestion& question,
                            const std::vector<std::vector<Setting>>& changes) {
  Tasks<Outcome> tasks;
  tasks.reserve(changes.size());
  for (const std::vector<Setting>& change : changes)
    tasks.emplace_back([&] { return outcome_with(question, change); });
  std::vector<Outcome> outcomes = in_workers(tasks, question.workers, question.progress);
  std::vector<NextStep> steps;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const double needed = outcomes[i].of("peak_memory").value_or(0);
    steps.push_back(
        {change_text(changes[i]), changes[i], 0, needed, Fit::fits, std::move(outcomes[i])});
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

struct TriedChange {
  std::vector<Setting> settings;
  Fit fit = Fit::oom;
  double needed = 0;
};

// Memory alone: nothing is replayed. What makes no sense does not fit.
TriedChange change_with(const NextStepQuestion& question, std::vector<Setting> settings) {
  TriedChange change{std::move(settings)};
  try {
    const Scenario changed =
        load_scenario(question.data, question.source, with(question, change.settings));
    if (changed.grpo) {
      const GrpoMemory memory = grpo_memory(changed);
      change.fit = memory.failure ? Fit::oom : Fit::fits;
      change.needed = memory.learner.most();
    } else {
      const Footprint needs = footprint(changed);
      change.fit = needs.fit();
      change.needed = needs.needed();
    }
  } catch (const UserError&) {
  }
  return change;
}

std::vector<NextStep> tried(const NextStepQuestion& question,
                            const std::vector<TriedChange>& changes) {
  std::vector<NextStep> steps = tried(question, mapped(changes, &TriedChange::settings));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].fit = changes[i].fit;
    steps[i].needed = changes[i].needed;
  }
  // A GRPO job's phases may need more than its moments say.
  if (question.scenario.grpo)
    std::erase_if(steps, [](const NextStep& step) { return !step.outcome.feasible; });
  sort_by_rate(steps);
  return steps;
}

// Of a GRPO job, what takes memory off a GPU, in the order in which people try it.
std::vector<Setting> grpo_savers(const Grpo& grpo) {
  std::vector<Setting> all;
  for (std::int64_t rows = grpo.pack_rows / 2; rows > 0; rows /= 2)
    all.emplace_back("job.pack_rows", std::to_string(rows));
  const std::int64_t shortest = grpo.model_length();
  for (std::int64_t length = grpo.pack_length; grpo.pack_rows == 0 && length > shortest;) {
    length = std::max(length / 2, shortest);
    all.emplace_back("job.pack_length", std::to_string(length));
  }
  if (grpo.gather_whole_model) all.emplace_back("job.gather_whole_model", "false");
  for (const std::int64_t gpus : {2, 4, 8})
    if (gpus > grpo.tensor_parallel)
      all.emplace_back("job.vllm_tensor_parallel_size", std::to_string(gpus));
  return all;
}

// What takes memory off a GPU, in the order in which people try it.
std::vector<Setting> savers(const Scenario& scenario) {
  std::vector<Setting> all =
      scenario.grpo ? grpo_savers(*scenario.grpo) : std::vector<Setting>{{"job.micro_batch", "1"}};
  append(all, std::vector<Setting>{{"strategy.checkpointing", "full"},
                                   {"strategy.cross_entropy", "fused"},
                                   {"strategy.zero", "3"},
                                   {"strategy.offload.optimizer", "cpu"},
                                   {"strategy.offload.parameters", "cpu"},
                                   {"strategy.offload.activations", "cpu"}});
  if (scenario.smaller_optimizer)
    all.emplace_back("strategy.optimizer", scenario.smaller_optimizer->name);
  return all;
}

// Each alone; of several values of a key the first that fits.
std::vector<TriedChange> fitting_changes(const NextStepQuestion& question) {
  std::vector<TriedChange> found;
  if (!question.scenario.grpo) {
    for (Remedy& remedy : remedies(question.scenario))
      found.push_back(
          {std::move(remedy.settings), remedy.footprint.fit(), remedy.footprint.needed()});
    return found;
  }
  for (const Setting& each : savers(question.scenario)) {
    const bool said = std::ranges::any_of(found, [&](const TriedChange& other) {
      return other.settings.front().first == each.first;
    });
    if (said) continue;
    if (TriedChange change = change_with(question, {each}); change.fit != Fit::oom)
      found.push_back(std::move(change));
  }
  return found;
}

std::vector<TriedChange> fitting_pairs(const NextStepQuestion& question) {
  const std::vector<Setting> all = savers(question.scenario);
  std::vector<TriedChange> pairs;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size() && pairs.size() < most_pairs; ++j)
      if (TriedChange pair = change_with(question, {all[i], all[j]}); pair.fit != Fit::oom)
        pairs.push_back(std::move(pair));
  return pairs;
}

// Twice as many, and again, until it fits.
std::vector<TriedChange> enough_nodes(const NextStepQuestion& question) {
  for (std::uint32_t nodes = 2 * question.scenario.cluster.nodes; nodes <= most_nodes_tried;
       nodes *= 2)
    if (TriedChange more = change_with(question, {{"cluster.nodes", std::to_string(nodes)}});
        more.fit != Fit::oom)
      return {more};
  return {};
}

std::size_t steps_to_try(const Scenario& scenario) {
  const std::size_t each =
      scenario.grpo ? operations_of_grpo : count_operations(step_input(scenario));
  return std::max(fewest_tried, most_operations / std::max<std::size_t>(each, 1));
}

}  // namespace

FasterSteps faster_steps(const NextStepQuestion& question, std::size_t most) {
  std::vector<std::vector<Setting>> changes = same_job_changes(question.data, question.scenario);
  const std::size_t allowed = std::min(changes.size(), steps_to_try(question.scenario));
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
  FittingSteps result;
  result.single = tried(question, fitting_changes(question));
  if (result.single.empty()) result.pairs = tried(question, fitting_pairs(question));
  result.nodes = tried(question, enough_nodes(question));
  return result;
}

}  // namespace stepsim
