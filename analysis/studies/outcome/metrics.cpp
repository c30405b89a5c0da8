#include "analysis/studies/outcome/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// These facts say what a metric is called, what it means, and how it is found in a step and in a
// GRPO job; where the table has nullptr, it is not known there.
struct MetricFacts {
  std::string_view name;
  Dimension dimension;
  std::string_view meaning;
  double (*of_step)(const Prediction&, double gpus);
  double (*of_grpo)(const GrpoPrediction&, double gpus);
  bool always = false;  // known of what does not fit, too: nothing of that would ever take time
};

double known(Joules energy) {
  return energy.value > 0 ? energy.value : unknown;
}

double of_step(const std::optional<Energy>& energy) {
  return energy ? energy->total() : unknown;
}

// A job without a length takes nobody knows how long.
double known(Seconds wall) {
  return wall.value > 0 ? wall.value : unknown;
}

constexpr std::array single_metrics = std::to_array<MetricFacts>({
    {"fits", Dimension::ratio, "1 when it can run, else 0", nullptr, nullptr, true},
    {"gpus", Dimension::ratio, "of the whole cluster", [](auto&, double n) { return n; },
     [](auto&, double n) { return n; }, true},
    {"step_time", Dimension::seconds, "one optimizer step",
     [](auto& p, double) { return p.step_time.value; },
     [](auto& p, double) { return p.step_time.value; }},
    {"step_time_low", Dimension::seconds, "with --samples: one draw in ten is below", nullptr,
     nullptr},
    {"step_time_high", Dimension::seconds, "with --samples: one draw in ten is above", nullptr,
     nullptr},
    {"steps_per_second", Dimension::ratio, "optimizer steps",
     [](auto& p, double) { return 1 / p.step_time.value; },
     [](auto& p, double) { return 1 / p.step_time.value; }},
    {"tokens_per_step", Dimension::ratio, "of all GPUs, padding left out",
     [](auto& p, double n) { return p.tokens_per_second_per_gpu * n * p.step_time.value; },
     [](auto& p, double) { return p.trained_per_second * p.step_time.value; }},
    {"tokens_per_second", Dimension::ratio, "of all GPUs, padding left out",
     [](auto& p, double n) { return p.tokens_per_second_per_gpu * n; },
     [](auto& p, double) { return p.trained_per_second; }},
    {"tokens_per_second_per_gpu", Dimension::ratio, "padding left out",
     [](auto& p, double) { return p.tokens_per_second_per_gpu; },
     [](auto& p, double n) { return p.trained_per_second / n; }},
    {"utilisation", Dimension::ratio, "of the bf16 peak, recomputation not counted",
     [](auto& p, double) { return p.utilisation; }, nullptr},
    {"gpu_time_per_million_tokens", Dimension::seconds, "what a million tokens cost",
     [](auto& p, double) { return 1e6 / p.tokens_per_second_per_gpu; },
     [](auto& p, double n) { return 1e6 * n / p.trained_per_second; }},
    {"wall", Dimension::seconds, "the whole job", [](auto& p, double) { return known(p.wall); },
     [](auto& p, double) { return known(p.wall); }},
    {"goodput", Dimension::ratio, "share of its time in steps that failures do not undo",
     [](auto& p, double) { return p.goodput ? p.goodput->useful : 1; },
     [](auto& p, double) { return p.goodput ? p.goodput->useful : 1; }},
    {"gpu_time", Dimension::seconds, "the whole job, on all GPUs",
     [](auto& p, double n) { return known(p.wall) * n; },
     [](auto& p, double n) { return known(p.wall) * n; }},
    {"price", Dimension::ratio, "with --price: money for a GPU and an hour", nullptr, nullptr},
    {"cost", Dimension::ratio, "with --price: money for the whole job", nullptr, nullptr},
    {"cost_per_million_tokens", Dimension::ratio, "with --price, and what failures undo", nullptr,
     nullptr},
    {"budget_tokens", Dimension::ratio, "with --budget-money: what it buys", nullptr, nullptr},
    {"energy", Dimension::joules, "one optimizer step: GPUs, hosts and the network",
     [](auto& p, double) { return of_step(p.energy); }, nullptr},
    {"gpu_energy", Dimension::joules, "of it the GPUs",
     [](auto& p, double) { return p.energy ? p.energy->by_drawer().front() : unknown; }, nullptr},
    {"job_energy", Dimension::joules, "the whole job: GPUs, hosts and the network",
     [](auto& p, double) { return known(p.job_energy); }, nullptr},
    {"peak_memory", Dimension::bytes, "of a GPU, with the allocator's slack",
     [](auto& p, double) { return p.memory.needed(); },
     [](auto& p, double) { return p.memory.learner.most(); }, true},
    {"state_memory", Dimension::bytes, "of it parameters, gradients and optimizer",
     [](auto& p, double) { return p.memory.states; },
     [](auto& p, double) { return p.memory.learner.start; }, true},
    {"memory_capacity", Dimension::bytes, "what a framework can allocate",
     [](auto& p, double) { return p.memory.capacity; },
     [](auto& p, double) { return p.memory.learner_capacity; }, true},
    {"learners", Dimension::ratio, "GPUs that train, of a GRPO job", nullptr,
     [](auto& p, double) { return static_cast<double>(p.placement.learners.size()); }, true},
    {"engines", Dimension::ratio, "inference engines of a GRPO job", nullptr,
     [](auto& p, double) { return static_cast<double>(p.placement.engines.size()); }, true},
    {"stranded_gpus", Dimension::ratio, "GPUs of a GRPO job that do neither", nullptr,
     [](auto& p, double) { return static_cast<double>(p.placement.stranded); }, true},
    {"responses_per_second", Dimension::ratio, "trained on, of a GRPO job", nullptr,
     [](auto& p, double) { return p.responses_per_second; }},
    {"generated_per_second", Dimension::ratio, "tokens, of a GRPO job", nullptr,
     [](auto& p, double) { return p.generated_per_second; }},
    {"gpu_time_per_1000_responses", Dimension::seconds, "what a thousand responses cost", nullptr,
     [](auto& p, double) { return 3600 * p.gpu_hours_per_1000; }},
    {"training_time", Dimension::seconds, "learners, in a GRPO step", nullptr,
     [](auto& p, double) { return p.training; }},
    {"sync_time", Dimension::seconds, "weights to the engines, in a GRPO step", nullptr,
     [](auto& p, double) { return p.sync; }},
    {"wait_time", Dimension::seconds, "learners without a batch, in a GRPO step", nullptr,
     [](auto& p, double) { return p.phases.wait; }},
    {"learner_utilisation", Dimension::ratio, "share of a GRPO step in which learners train",
     nullptr, [](auto& p, double) { return p.learner_busy; }},
    {"engine_utilisation", Dimension::ratio, "share of the time in which engines are not empty",
     nullptr, [](auto& p, double) { return p.engine_busy; }},
    {"card_utilisation", Dimension::ratio,
     "share of the time in which the first learner's network card carries something", nullptr,
     [](auto& p, double) { return p.card_busy; }},
    {"running_sequences", Dimension::ratio, "on an engine, mean over time", nullptr,
     [](auto& p, double) { return p.running_sequences; }},
    {"mean_staleness", Dimension::ratio, "steps between generation and training", nullptr,
     [](auto& p, double) { return p.staleness; }},
    {"max_staleness", Dimension::ratio, "the most of it", nullptr,
     [](auto& p, double) { return p.most_stale; }},
    {"mixed_share", Dimension::ratio, "of a GRPO job's responses: by several versions", nullptr,
     [](auto& p, double) { return p.mixed; }},
    {"truncated_share", Dimension::ratio, "of a GRPO job's responses: cut at the limit", nullptr,
     [](auto& p, double) { return p.truncated; }},
    {"stale_share", Dimension::ratio, "of a GRPO job's tokens: thrown away as too old", nullptr,
     [](auto& p, double) { return p.stale_share; }},
    {"filtered_share", Dimension::ratio, "of a GRPO job's tokens: in groups without a signal",
     nullptr, [](auto& p, double) { return p.filtered_share; }},
    {"left_over_share", Dimension::ratio, "of a GRPO job's tokens: dropped by packing", nullptr,
     [](auto& p, double) { return p.dropped_share; }},
    {"preemptions", Dimension::ratio, "in a GRPO step", nullptr,
     [](auto& p, double) { return p.preemptions; }},
    {"first_step", Dimension::seconds, "with the first sync, of a GRPO job", nullptr,
     [](auto& p, double) { return p.first_step.value; }},
    {"start_up", Dimension::seconds, "until engines take prompts, of a GRPO job", nullptr,
     [](auto& p, double) { return p.start_up.value; }},
    {"engine_memory", Dimension::bytes, "of a GPU that generates", nullptr,
     [](auto& p, double) { return p.memory.engine.most(); }, true},
    {"host_memory", Dimension::bytes, "of a node of a GRPO job", nullptr,
     [](auto& p, double) { return p.memory.host.most(); }, true},
    {"learner_memory_start", Dimension::bytes, "of a GPU that trains, before it does", nullptr,
     [](auto& p, double) { return p.memory.learner.start; }, true},
    {"learner_memory_training", Dimension::bytes, "at the peak of training", nullptr,
     [](auto& p, double) { return p.memory.learner.training; }, true},
    {"learner_memory_sync", Dimension::bytes, "at the peak of a weight sync", nullptr,
     [](auto& p, double) { return p.memory.learner.sync; }, true},
    {"engine_memory_start", Dimension::bytes, "of a GPU that generates, once it does", nullptr,
     [](auto& p, double) { return p.memory.engine.start; }, true},
    {"engine_memory_training", Dimension::bytes, "while learners train", nullptr,
     [](auto& p, double) { return p.memory.engine.training; }, true},
    {"engine_memory_sync", Dimension::bytes, "while weights arrive", nullptr,
     [](auto& p, double) { return p.memory.engine.sync; }, true},
    {"host_memory_start", Dimension::bytes, "of a node with learners, before they train", nullptr,
     [](auto& p, double) { return p.memory.host.start; }, true},
    {"host_memory_training", Dimension::bytes, "while they train", nullptr,
     [](auto& p, double) { return p.memory.host.training; }, true},
    {"host_memory_sync", Dimension::bytes, "while weights are sent", nullptr,
     [](auto& p, double) { return p.memory.host.sync; }, true},
});

std::vector<NamedMetric> make_metrics() {
  std::vector<NamedMetric> list =
      mapped(single_metrics, [&](const MetricFacts& metric) -> NamedMetric {
        return {std::string(metric.name), metric.dimension, std::string(metric.meaning)};
      });
  const auto times = [&](std::string_view cause) {
    list.push_back({fmt::format("time.{}", cause), Dimension::seconds,
                    fmt::format("exposed time of {} in a step", cause)});
  };
  for (const std::string_view cause : cause_names) times(cause);
  times("idle");
  for (const PhaseSpec& phase : phase_specs()) {  // of a GRPO step; some are called as a cause is
    const std::string name = fmt::format("time.{}", phase.key);
    const bool known = holds(list, name, &NamedMetric::name);
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

// Returns an outcome whose only figure is whether it can run.
Outcome outcome_without_figures(bool feasible, std::string reason) {
  Outcome outcome;
  outcome.feasible = feasible;
  outcome.reason = std::move(reason);
  outcome.figures.assign(metrics().size(), unknown);
  outcome.figures.front() = feasible ? 1 : 0;
  return outcome;
}

// The single metrics stand first, in the order of their table.
template <class Found>
void put_single(const Scenario& scenario, const Found& found, Outcome& outcome) {
  const double gpus = scenario.cluster.ranks();
  for (std::size_t i = 1; i < single_metrics.size(); ++i) {
    const MetricFacts& metric = single_metrics[i];
    if (!outcome.feasible && !metric.always) continue;
    if constexpr (std::is_same_v<Found, Prediction>) {
      if (metric.of_step != nullptr) outcome.figures[i] = metric.of_step(found, gpus);
    } else {
      if (metric.of_grpo != nullptr) outcome.figures[i] = metric.of_grpo(found, gpus);
    }
  }
}

void put_time(std::string_view of, double seconds, Outcome& outcome) {
  outcome.figures[*find_metric(fmt::format("time.{}", of))] = seconds;
}

// Writes "needs 92.1 GB of 84.0 GB"; which class is largest says what to shrink.
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

bool any_malformed(const UserError& error) {
  return holds(error.problems(), Fault::form, &Problem::fault);
}

// Names the first problem without the file: every point of a study has the same.
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
  const auto place = std::ranges::find(metrics(), name, &NamedMetric::name);
  if (place == metrics().end()) return std::nullopt;
  return static_cast<std::size_t>(place - metrics().begin());
}

std::string column_name(const NamedMetric& metric) {
  if (metric.dimension == Dimension::seconds) return metric.name + "_s";
  if (metric.dimension == Dimension::bytes) return metric.name + "_bytes";
  if (metric.dimension == Dimension::joules) return metric.name + "_j";
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
  const bool fits = p.memory.fit() != Fit::oom;
  Outcome outcome = outcome_without_figures(fits, fits ? "" : why_it_does_not_fit(p.memory));
  put_single(scenario, p, outcome);
  if (!fits) return outcome;
  for (const std::string_view cause : cause_names) put_time(cause, 0, outcome);
  for (const BreakdownRow& row : p.breakdown.rows)
    put_time(to_text(row.cause), row.exposed.value, outcome);
  put_time("idle", p.breakdown.idle.value, outcome);
  const bool waits =
      p.breakdown.rows.empty() || p.breakdown.idle > p.breakdown.rows.front().exposed;
  outcome.bottleneck = waits ? "idle" : to_text(p.breakdown.rows.front().cause);
  return outcome;
}

Outcome outcome_of(const Scenario& scenario, const GrpoPrediction& p) {
  Outcome outcome = outcome_without_figures(!p.memory.failure, p.memory.failure.value_or(""));
  put_single(scenario, p, outcome);
  if (!outcome.feasible) return outcome;
  outcome.bottleneck = p.bottleneck;
  for (const PhaseSpec& phase : phase_specs())
    put_time(phase.key, p.phases.*phase.seconds, outcome);
  return outcome;
}

Outcome impossible(std::string_view why) {
  // The first line is the first thing to mend.
  return outcome_without_figures(false, std::string(why.substr(0, why.find('\n'))));
}

Outcome evaluate(const Catalogue& data, const std::string& scenario,
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
    const Prediction p = predict(loaded, Kept::figures);
    if (p.loss)
      return impossible(fmt::format("{} is lost after {}: the step ends there", p.loss->what,
                                    to_text(p.loss->at)));
    return outcome_of(loaded, p);
  } catch (const UserError& error) {  // a sound scenario that the machine cannot carry out
    return impossible(first_of(error));
  }
}

std::vector<std::string> require_meaning(const Catalogue& data, const std::string& scenario,
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
    const auto figure = number_from<double>(line.substr(0, end));
    if (!figure) return std::nullopt;
    outcome.figures.push_back(*figure);
    line.remove_prefix(end + 1);
  }
  if (outcome.figures.size() != metrics().size()) return std::nullopt;
  return outcome;
}

}  // namespace stepsim
