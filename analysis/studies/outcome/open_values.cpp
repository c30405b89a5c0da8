#include "analysis/studies/outcome/open_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/studies/predict/draws.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/taken.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "workloads/program/rank_part.hpp"

namespace stepsim {
namespace {

constexpr std::string_view of_scenario = "scenario.";
constexpr double moves_nothing = 1e-3;  // of a step time

std::vector<NamedConstant> unknown_values(const Scenario& scenario) {
  std::vector<NamedConstant> unsure;
  for (const NamedConstant& each : scenario.constants)
    if (each.name.starts_with(of_scenario) && each.low < each.high) unsure.push_back(each);
  return unsure;
}

// Returns how far an assumption without a range reaches: a machine decides everything, the size of
// the data set nothing of a step, and the model that the file names is no assumption.
double reach_of(const Assumption& assumption) {
  constexpr double everything = 10, something = 0.01;
  if (assumption.what == "size of the data set") return -1;
  if (assumption.what == "model")
    return assumption.why.find("of the catalogue") != std::string::npos ? -2 : everything;
  if (assumption.what == "machine" || assumption.what.find("GPUs") != std::string::npos ||
      assumption.what.find("nodes") != std::string::npos)
    return everything;
  return something;
}

Assumption assumption_of(const NamedConstant& constant) {
  const std::string key = constant.name.substr(of_scenario.size());
  const auto text = [&](double value) { return value_text(constant, value); };
  const std::string may_be =
      constant.words.empty()
          ? fmt::format("{} to {}", text(constant.low), text(constant.high))
          : fmt::format("{} or {}", constant.words.front(), constant.words.back());
  return {key, fmt::format("{} ({})", text(constant.value), may_be), "the file does not say",
          fmt::format("--set {}={}", key, text(constant.low))};
}

// Returns the values in the file's words, each with the constant behind it where there is one.
std::vector<std::pair<OpenValue, std::optional<NamedConstant>>> values_of(
    const Scenario& scenario) {
  std::vector<std::pair<OpenValue, std::optional<NamedConstant>>> values;
  std::vector<NamedConstant> unsure = unknown_values(scenario);
  for (const Assumption& each : scenario.assumptions) {
    OpenValue value{.assumption = each};
    value.swing = reach_of(each);
    const auto fill = std::ranges::find(unsure, "scenario.job.fill", &NamedConstant::name);
    if (each.what == length_of_rows && fill != unsure.end()) {
      values.emplace_back(value, *fill);
      unsure.erase(fill);
    } else {
      values.emplace_back(value, std::nullopt);
    }
  }
  for (const NamedConstant& each : unsure)
    values.emplace_back(OpenValue{.assumption = assumption_of(each)}, each);
  return values;
}

void set_ends(OpenValue& value, const Outcome& low, const Outcome& high) {
  const auto put = [&](std::string_view metric) {
    const double one = low.of(metric).value_or(0), other = high.of(metric).value_or(0);
    if (one <= 0 || other <= 0) return false;
    value.low = std::min(one, other);
    value.high = std::max(one, other);
    value.swing = value.high / value.low - 1;
    return value.swing > moves_nothing;
  };
  if (put("step_time")) return;
  value.rate = put("tokens_per_second_per_gpu");
  if (!value.rate) put("step_time");
}

// These values of a key are what others choose.
struct OtherValue {
  std::string_view key, value, called, other;
};
constexpr std::array other_values = std::to_array<OtherValue>({
    {"strategy.zero", "3", "sharding", "ZeRO-3"},
    {"job.micro_batch", "1", "micro-batch", "micro-batch 1"},
    {"strategy.checkpointing", "full", "checkpointing", "full checkpointing"},
});

std::string taken_text(const Scenario& scenario, std::string_view key) {
  if (key == "job.micro_batch") return fmt::format("micro-batch {}", scenario.job.micro_batch);
  const std::string_view part = key == "strategy.zero" ? "sharding" : "checkpointing";
  for (const Taken& each : taken_of(scenario)) {
    if (each.key != part) continue;
    return each.text.substr(0, each.text.find(nobodys_mark));
  }
  return "";
}

OtherVerdict verdict_with(const NextStepQuestion& question, OtherVerdict verdict) {
  std::vector<Setting> settings = question.settings;
  append(settings, verdict.settings);
  try {
    const Scenario scenario = load_scenario(question.data, question.source, settings);
    if (!setup_fits(scenario)) return verdict;
    const Footprint needs = footprint(scenario);
    verdict.fit = needs.fit();
    verdict.needed = needs.needed();
  } catch (const UserError&) {  // the scenario has no place for it
  }
  return verdict;
}

}  // namespace

std::vector<OpenValue> open_values(const NextStepQuestion& question) {
  constexpr std::size_t few_operations = 30000;
  auto values = values_of(question.scenario);
  const bool cheap =
      !question.scenario.grpo && count_operations(step_input(question.scenario)) <= few_operations;
  Tasks<Outcome> tasks;
  for (const auto& [value, constant] : values)
    if (cheap && constant)
      for (const double end : {constant->low, constant->high})
        tasks.emplace_back([&question, setting = setting_of(*constant, end)] {
          std::vector<Setting> settings = question.settings;
          settings.push_back(setting);
          try {
            return evaluate(question.data, question.source, settings);
          } catch (const UserError& error) {
            return impossible(error.what());
          }
        });
  const std::vector<Outcome> outcomes = in_workers(tasks, question.workers, Progress{});
  std::size_t at = 0;
  std::vector<OpenValue> open;
  for (auto& [value, constant] : values) {
    if (cheap && constant) {
      set_ends(value, outcomes[at], outcomes[at + 1]);
      at += 2;
    }
    open.push_back(std::move(value));
  }
  std::ranges::stable_sort(open, std::greater{}, &OpenValue::swing);
  return open;
}

std::vector<OtherVerdict> other_verdicts(const NextStepQuestion& question) {
  const Scenario& scenario = question.scenario;
  if (scenario.grpo) return {};
  const std::vector<std::string> unsaid = unsaid_keys(scenario);
  std::vector<OtherVerdict> verdicts;
  OtherVerdict all;
  for (const OtherValue& each : other_values) {
    const bool there =
        (each.key == "strategy.zero" &&
         (scenario.strategy.sharding != Sharding::zero0 || scenario.cluster.ranks() == 1)) ||
        (each.key == "job.micro_batch" && scenario.job.micro_batch == 1) ||
        (each.key == "strategy.checkpointing" &&
         scenario.strategy.checkpointing != Checkpointing::none);
    if (there || !holds(unsaid, each.key)) continue;
    OtherVerdict one;
    one.settings = {{std::string(each.key), std::string(each.value)}};
    one.key = each.called;
    one.taken = taken_text(scenario, each.key);
    one.other = each.other;
    append(all.settings, one.settings);
    all.key += (all.key.empty() ? "" : ", ") + one.key;
    all.taken += (all.taken.empty() ? "" : ", ") + one.taken;
    all.other += (all.other.empty() ? "" : ", ") + one.other;
    verdicts.push_back(verdict_with(question, std::move(one)));
  }
  const bool several = verdicts.size() > 1;
  std::erase_if(verdicts, [](const OtherVerdict& each) { return each.fit == Fit::oom; });
  if (!verdicts.empty() || !several) return verdicts;
  if (const OtherVerdict together = verdict_with(question, std::move(all));
      together.fit != Fit::oom)
    verdicts.push_back(together);
  return verdicts;
}

}  // namespace stepsim
