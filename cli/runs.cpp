#include "cli/runs.hpp"

#include <fmt/format.h>

#include "analysis/studies/grpo/grpo_trace.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "cli/outputs.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/run_file.hpp"

namespace stepsim {

std::uint32_t usual_samples(std::size_t operations) {
  constexpr std::size_t few_operations = 30000;
  return operations <= few_operations ? draws_at_once : 0;
}

std::optional<Interval> interval_of_run(const IntervalQuestion& question) {
  if (question.samples == 0) return std::nullopt;
  return interval_of(question);
}

void add_interval(Run& run, const Interval& interval) {
  const auto add = [&](const std::string& name, const Range& range, Dimension dimension) {
    run.summary.push_back({name + "_low", range.low, dimension});
    run.summary.push_back({name + "_high", range.high, dimension});
  };
  add("step_time", interval.step_time, Dimension::seconds);
  add("tokens_per_second_per_gpu", interval.throughput, Dimension::ratio);
  add("memory_needed", interval.memory, Dimension::bytes);
}

std::vector<std::string> run_files(const CommandLine& line, const std::string& word,
                                   std::span<const Setting> settings) {
  if (is_run_file(word)) return {word};
  return files_of(line, word, load_scenario(line.data, word, settings));
}

Run load_run(const CommandLine& line, const std::string& word, std::span<const Setting> settings,
             const Player& player) {
  if (is_run_file(word)) {
    if (!settings.empty())
      throw UserError(
          fmt::format("--set changes a scenario, and \"{}\" is a saved trace: what it holds has "
                      "happened",
                      word));
    return read_run(word);
  }
  const Scenario scenario = load_scenario(line.data, word, settings);
  if (scenario.grpo) return grpo_trace(scenario, predict_grpo(scenario, {.player = player}));
  Run run = predict(scenario, Kept::run, {.player = player}).run;
  const auto interval = interval_of_run({.data = line.data,
                                         .scenario = word,
                                         .settings = settings,
                                         .samples = usual_samples(run.graph.size())});
  if (interval) add_interval(run, *interval);
  return run;
}

}  // namespace stepsim
