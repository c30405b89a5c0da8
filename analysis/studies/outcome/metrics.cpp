#include "analysis/studies/outcome/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

std::vector<NamedMetric> step_metrics() {
  return {
      {"fits", Dimension::ratio, "1 when it can run, else 0"},
      {"gpus", Dimension::ratio, "of the whole cluster"},
      {"step_time", Dimension::seconds, "one optimizer step"},
      {"step_time_low", Dimension::seconds, "with --samples: one draw in ten is below"},
      {"step_time_high", Dimension::seconds, "with --samples: one draw in ten is above"},
      {"steps_per_second", Dimension::ratio, "optimizer steps"},
      {"tokens_per_step", Dimension::ratio, "of all GPUs, padding left out"},
      {"tokens_per_second", Dimension::ratio, "of all GPUs, padding left out"},
      {"tokens_per_second_per_gpu", Dimension::ratio, "padding left out"},
      {"utilisation", Dimension::ratio, "of the bf16 peak, recomputation not counted"},
      {"gpu_time_per_million_tokens", Dimension::seconds, "what a million tokens cost"},
      {"wall", Dimension::seconds, "the whole job"},
      {"gpu_time", Dimension::seconds, "the whole job, on all GPUs"},
      {"peak_memory", Dimension::bytes, "of a GPU, with the allocator's slack"},
      {"state_memory", Dimension::bytes, "of it parameters, gradients and optimizer"},
      {"memory_capacity", Dimension::bytes, "what a framework can allocate"},
  };
}

std::vector<NamedMetric> grpo_step_metrics() {
  return {
      {"learners", Dimension::ratio, "GPUs that train, of a GRPO job"},
      {"engines", Dimension::ratio, "inference engines of a GRPO job"},
      {"stranded_gpus", Dimension::ratio, "GPUs of a GRPO job that do neither"},
      {"responses_per_second", Dimension::ratio, "trained on, of a GRPO job"},
      {"generated_per_second", Dimension::ratio, "tokens, of a GRPO job"},
      {"gpu_time_per_1000_responses", Dimension::seconds, "what a thousand responses cost"},
      {"training_time", Dimension::seconds, "learners, in a GRPO step"},
      {"sync_time", Dimension::seconds, "weights to the engines, in a GRPO step"},
      {"wait_time", Dimension::seconds, "learners without a batch, in a GRPO step"},
      {"learner_utilisation", Dimension::ratio, "share of a GRPO step in which learners train"},
      {"engine_utilisation", Dimension::ratio, "share of the time in which engines are not empty"},
      {"card_utilisation", Dimension::ratio,
       "share of the time in which the first learner's network card carries something"},
      {"running_sequences", Dimension::ratio, "on an engine, mean over time"},
      {"mean_staleness", Dimension::ratio, "steps between generation and training"},
      {"max_staleness", Dimension::ratio, "the most of it"},
      {"mixed_share", Dimension::ratio, "of a GRPO job's responses: by several versions"},
      {"truncated_share", Dimension::ratio, "of a GRPO job's responses: cut at the limit"},
      {"stale_share", Dimension::ratio, "of a GRPO job's tokens: thrown away as too old"},
      {"filtered_share", Dimension::ratio, "of a GRPO job's tokens: in groups without a signal"},
      {"left_over_share", Dimension::ratio, "of a GRPO job's tokens: dropped by packing"},
      {"preemptions", Dimension::ratio, "in a GRPO step"},
      {"first_step", Dimension::seconds, "with the first sync, of a GRPO job"},
      {"start_up", Dimension::seconds, "until engines take prompts, of a GRPO job"},
      {"engine_memory", Dimension::bytes, "of a GPU that generates"},
      {"host_memory", Dimension::bytes, "of a node of a GRPO job"},
      {"learner_memory_start", Dimension::bytes, "of a GPU that trains, before it does"},
      {"learner_memory_training", Dimension::bytes, "at the peak of training"},
      {"learner_memory_sync", Dimension::bytes, "at the peak of a weight sync"},
      {"engine_memory_start", Dimension::bytes, "of a GPU that generates, once it does"},
      {"engine_memory_training", Dimension::bytes, "while learners train"},
      {"engine_memory_sync", Dimension::bytes, "while weights arrive"},
      {"host_memory_start", Dimension::bytes, "of a node with learners, before they train"},
      {"host_memory_training", Dimension::bytes, "while they train"},
      {"host_memory_sync", Dimension::bytes, "while weights are sent"},
  };
}

std::vector<NamedMetric> make_metrics() {
  std::vector<NamedMetric> list = step_metrics();
  for (NamedMetric& metric : grpo_step_metrics()) list.push_back(std::move(metric));
  const auto times = [&](std::string_view cause) {
    list.push_back({fmt::format("time.{}", cause), Dimension::seconds,
                    fmt::format("exposed time of {} in a step", cause)});
  };
  for (const std::string_view cause : cause_names) times(cause);
  times("idle");
  for (const PhaseSpec& phase : phase_specs()) {  // of a GRPO step; some are called as a cause is
    const std::string name = fmt::format("time.{}", phase.key);
    const bool known = std::any_of(list.begin(), list.end(),
                                   [&](const NamedMetric& metric) { return metric.name == name; });
    if (!known) list.push_back({name, Dimension::seconds, std::string(phase.text)});
  }
  return list;
}

const std::vector<NamedMetric>& metrics() {
  static const std::vector<NamedMetric> list = make_metrics();
  return list;
}

// A share is a time over the step time, so it needs no column of its own.
std::optional<std::string> time_behind(std::string_view metric) {
  if (!metric.starts_with("share.")) return std::nullopt;
  return fmt::format("time.{}", metric.substr(6));
}

class Sheet {
 public:
  explicit Sheet(Outcome& outcome) : figures_(outcome.figures) {
    figures_.assign(metrics().size(), unknown);
  }
  void put(std::string_view name, double value) { figures_[*find_metric(name)] = value; }

 private:
  std::vector<double>& figures_;
};

// "needs 92.1 GB of 84.0 GB"; which class is largest says what to shrink.
std::string why_it_does_not_fit(const Footprint& memory) {
  if (!memory.host_fits())
    return fmt::format("out of host memory: needs {} of {}, in {}",
                       to_text(Bytes{memory.host.peak.bytes}), to_text(Bytes{memory.host_capacity}),
                       memory.host.peak.phase);
  const auto& [largest, most] = memory.device.peak.classes.front();
  return fmt::format("out of memory: needs {} of {}, most of it {} ({}); in {}, at {}",
                     to_text(Bytes{memory.needed()}), to_text(Bytes{memory.capacity}), largest,
                     to_text(Bytes{most}), memory.device.peak.phase, memory.device.peak.name);
}

void put_times(const Scenario& scenario, const Prediction& p, Sheet& sheet) {
  const double gpus = scenario.cluster.ranks();
  const double step = p.step_time.value;
  const double rate = p.tokens_per_second_per_gpu;
  sheet.put("step_time", step);
  sheet.put("steps_per_second", 1 / step);
  sheet.put("tokens_per_step", rate * gpus * step);
  sheet.put("tokens_per_second", rate * gpus);
  sheet.put("tokens_per_second_per_gpu", rate);
  sheet.put("utilisation", p.utilisation);
  sheet.put("gpu_time_per_million_tokens", 1e6 / rate);
  if (p.wall.value > 0) {
    sheet.put("wall", p.wall.value);
    sheet.put("gpu_time", p.wall.value * gpus);
  }
  for (const std::string_view cause : cause_names) sheet.put(fmt::format("time.{}", cause), 0);
  for (const BreakdownRow& row : p.breakdown.rows)
    sheet.put(fmt::format("time.{}", to_text(row.cause)), row.exposed.value);
  sheet.put("time.idle", p.breakdown.idle.value);
}

void put_moments(std::string_view who, const MomentBytes& bytes, Sheet& sheet) {
  sheet.put(fmt::format("{}_memory_start", who), bytes.start);
  sheet.put(fmt::format("{}_memory_training", who), bytes.training);
  sheet.put(fmt::format("{}_memory_sync", who), bytes.sync);
}

bool any_malformed(const UserError& error) {
  return std::any_of(error.problems().begin(), error.problems().end(),
                     [](const Problem& problem) { return problem.fault == Fault::form; });
}

// Without the file: every point of a study has the same.
std::string first_of(const UserError& error) {
  const Problem& first = error.problems().front();
  return first.key.empty() ? first.message : fmt::format("{}: {}", first.key, first.message);
}

// A setting of a sweep may have come by either option.
UserError of_sweep(const UserError& error) {
  std::vector<Problem> problems = error.problems();
  for (Problem& problem : problems)
    if (problem.file == "--set") problem.file = "--set or --vary";
  return UserError(std::move(problems));
}

}  // namespace

std::span<const NamedMetric> all_metrics() {
  return metrics();
}

std::optional<std::size_t> find_metric(std::string_view name) {
  const auto place = std::find_if(metrics().begin(), metrics().end(),
                                  [&](const NamedMetric& metric) { return metric.name == name; });
  if (place == metrics().end()) return std::nullopt;
  return static_cast<std::size_t>(place - metrics().begin());
}

std::string column_name(const NamedMetric& metric) {
  if (metric.dimension == Dimension::seconds) return metric.name + "_s";
  if (metric.dimension == Dimension::bytes) return metric.name + "_bytes";
  return metric.name;
}

std::optional<double> Outcome::of(std::string_view metric) const {
  if (const auto time = time_behind(metric)) {
    const auto part = of(*time), step = of("step_time");
    return part && step ? std::optional(*part / *step) : std::nullopt;
  }
  const auto place = find_metric(metric);
  if (!place || *place >= figures.size() || std::isnan(figures[*place])) return std::nullopt;
  return figures[*place];
}

Outcome outcome_of(const Scenario& scenario, const Prediction& p) {
  Outcome outcome;
  Sheet sheet(outcome);
  outcome.feasible = p.memory.fit() != Fit::oom;
  sheet.put("fits", outcome.feasible ? 1 : 0);
  sheet.put("gpus", scenario.cluster.ranks());
  sheet.put("peak_memory", p.memory.needed());
  sheet.put("state_memory", p.memory.states);
  sheet.put("memory_capacity", p.memory.capacity);
  if (!outcome.feasible) {
    outcome.reason = why_it_does_not_fit(p.memory);  // and no times: nothing of this would ever run
    return outcome;
  }
  put_times(scenario, p, sheet);
  const bool waits =
      p.breakdown.rows.empty() || p.breakdown.idle > p.breakdown.rows.front().exposed;
  outcome.bottleneck = waits ? "idle" : to_text(p.breakdown.rows.front().cause);
  return outcome;
}

Outcome outcome_of(const Scenario& scenario, const GrpoPrediction& p) {
  Outcome outcome;
  Sheet sheet(outcome);
  const double gpus = scenario.cluster.ranks();
  outcome.feasible = !p.memory.failure;
  sheet.put("fits", outcome.feasible ? 1 : 0);
  sheet.put("gpus", gpus);
  sheet.put("peak_memory", p.memory.learner.most());
  sheet.put("state_memory", p.memory.learner.start);
  sheet.put("memory_capacity", p.memory.learner_capacity);
  sheet.put("learners", static_cast<double>(p.placement.learners.size()));
  sheet.put("engines", static_cast<double>(p.placement.engines.size()));
  sheet.put("stranded_gpus", p.placement.stranded);
  sheet.put("engine_memory", p.memory.engine.most());
  sheet.put("host_memory", p.memory.host.most());
  put_moments("learner", p.memory.learner, sheet);
  put_moments("engine", p.memory.engine, sheet);
  put_moments("host", p.memory.host, sheet);
  if (!outcome.feasible) {
    outcome.reason = *p.memory.failure;
    return outcome;
  }
  outcome.bottleneck = p.bottleneck;
  const double step = p.step_time.value;
  sheet.put("step_time", step);
  sheet.put("steps_per_second", 1 / step);
  sheet.put("tokens_per_step", p.trained_per_second * step);
  sheet.put("tokens_per_second", p.trained_per_second);
  sheet.put("tokens_per_second_per_gpu", p.trained_per_second / gpus);
  sheet.put("gpu_time_per_million_tokens", 1e6 * gpus / p.trained_per_second);
  if (p.wall.value > 0) {
    sheet.put("wall", p.wall.value);
    sheet.put("gpu_time", p.wall.value * gpus);
  }
  sheet.put("responses_per_second", p.responses_per_second);
  sheet.put("generated_per_second", p.generated_per_second);
  sheet.put("gpu_time_per_1000_responses", 3600 * p.gpu_hours_per_1000);
  sheet.put("training_time", p.training);
  sheet.put("sync_time", p.sync);
  sheet.put("wait_time", p.phases.wait);
  sheet.put("learner_utilisation", p.learner_busy);
  sheet.put("engine_utilisation", p.engine_busy);
  sheet.put("card_utilisation", p.card_busy);
  sheet.put("running_sequences", p.running_sequences);
  sheet.put("mean_staleness", p.staleness);
  sheet.put("max_staleness", p.most_stale);
  sheet.put("mixed_share", p.mixed);
  sheet.put("truncated_share", p.truncated);
  sheet.put("stale_share", p.stale_share);
  sheet.put("filtered_share", p.filtered_share);
  sheet.put("left_over_share", p.dropped_share);
  sheet.put("preemptions", p.preemptions);
  sheet.put("first_step", p.first_step.value);
  sheet.put("start_up", p.start_up.value);
  for (const PhaseSpec& phase : phase_specs())
    sheet.put(fmt::format("time.{}", phase.key), p.phases.*phase.seconds);
  return outcome;
}

Outcome impossible(std::string_view why) {
  Outcome outcome;
  Sheet(outcome).put("fits", 0);
  outcome.reason = why.substr(0, why.find('\n'));  // the first thing to mend
  return outcome;
}

Outcome evaluate(const std::string& data, const std::string& scenario,
                 std::span<const Setting> settings, const MaybeDraw& draw) {
  Scenario loaded;
  try {
    loaded = load_scenario(data, scenario, settings, draw);
  } catch (const UserError& error) {
    if (any_malformed(error)) throw of_sweep(error);
    return impossible(first_of(error));
  }
  try {
    if (loaded.grpo) return outcome_of(loaded, predict_grpo(loaded));
    return outcome_of(loaded, predict(loaded, Folding::automatic));
  } catch (const UserError& error) {  // a sound scenario that the machine cannot carry out
    return impossible(first_of(error));
  }
}

std::vector<std::string> require_meaning(const std::string& data, const std::string& scenario,
                                         std::span<const Setting> settings) {
  try {
    return load_scenario(data, scenario, settings).files;
  } catch (const UserError& error) {
    if (any_malformed(error)) throw of_sweep(error);
  }
  return {};
}

std::string to_line(const Outcome& outcome) {
  std::string line =
      fmt::format("{}\t{}\t{}\t", outcome.feasible ? 1 : 0, outcome.reason, outcome.bottleneck);
  for (const double figure : outcome.figures) line += fmt::format("{} ", figure);
  return line + ".";
}

std::optional<Outcome> outcome_from(std::string_view line) {
  std::vector<std::string_view> cells;
  while (cells.size() < 3) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return std::nullopt;
    cells.push_back(line.substr(0, tab));
    line.remove_prefix(tab + 1);
  }
  Outcome outcome{cells[0] == "1", std::string(cells[1]), std::string(cells[2]), {}};
  while (line != ".") {
    const std::size_t end = line.find(' ');
    if (end == std::string_view::npos) return std::nullopt;
    double figure = unknown;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + end, figure);
    if (error != std::errc() || rest != line.data() + end) return std::nullopt;
    outcome.figures.push_back(figure);
    line.remove_prefix(end + 1);
  }
  if (outcome.figures.size() != metrics().size()) return std::nullopt;
  return outcome;
}

}  // namespace stepsim
