#include "analysis/studies/anchor/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/studies/anchor/posterior.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Half of the runs that somebody asks about have nothing wrong but the catalogue's figures.
constexpr double healthy_prior = 0.1;
// A word of evidence makes its fault this many times as likely.
constexpr double odds_of_word = 30;

// A worker says this of one replay; a time of 0: it cannot run so.
struct Replayed {
  double step_time = 0, busy = 0;
  MemoryFigures memory;
  KernelTimes kernels;
};

Replayed replayed(const FaultQuestion& question, const std::vector<Setting>& settings) {
  try {
    const Scenario scenario = load_scenario(question.data, question.scenario, settings);
    const Prediction p = predict(scenario, Kept::figures);
    return {p.step_time.value, busy_share(p), memory_figures(scenario, p.memory),
            kernel_times(step_input(scenario))};
  } catch (const UserError&) {
    return {};  // what the fault sets does not go with this scenario
  }
}

std::vector<FaultyStep> possible_steps(const FaultQuestion& question, const Scenario& scenario,
                                       const std::vector<FaultKind>& kinds) {
  std::vector<FaultyStep> steps;
  const auto ranks = static_cast<std::int64_t>(scenario.cluster.ranks());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (ranks < kinds[i].gpus || scenario.cluster.nodes < kinds[i].nodes) continue;
    for (const std::vector<Setting>& level : kinds[i].levels) {
      FaultyStep step{.fault = i, .spread = kinds[i].spread};
      const std::vector<Setting> own = settings_of_level(level, scenario);
      if (own.empty()) continue;
      step.settings.assign(question.settings.begin(), question.settings.end());
      append(step.settings, own);
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

bool changes_something(const FaultyStep& step, const FaultyStep& healthy) {
  constexpr double least = 0.02;
  const auto off = [](double a, double b) { return std::abs(std::log(a / b)) > least; };
  return step.step_time > 0 && (off(step.step_time, healthy.step_time) ||
                                off(step.memory.needed, healthy.memory.needed) ||
                                off(step.memory.device, healthy.memory.device));
}

std::vector<double> drawn_times(const FaultQuestion& question, const Prediction& stated) {
  std::vector<double> times(question.samples);
  in_workers(
      question.samples, std::max<std::size_t>(question.workers, 1),
      [&](std::size_t i) {
        const Draw draw{
            .seed = question.seed, .sample = static_cast<std::uint32_t>(i), .of = question.samples};
        return step_figures(
                   load_scenario(question.data, question.scenario, question.settings, draw), {},
                   Asked::times)
            .step_time.value;
      },
      [&](std::size_t i, double time) { times[i] = std::log(time / stated.step_time.value); });
  return centred(std::move(times), 0);
}

double likelihood_of_kernels(const KernelTimes& replayed, const RunSigns& seen) {
  constexpr double fair = 0.05, error = 0.15;
  double all = 1;
  const double whole = seen.profile->steps_known ? 1 : replayed.all();
  for (const auto part : {&KernelTimes::products, &KernelTimes::attention, &KernelTimes::other})
    if ((*seen.kernels).*part > fair * seen.kernels->all() && replayed.*part > 0)
      all *= long_tailed(std::log(replayed.*part / whole / ((*seen.kernels).*part)) / error);
  return all;
}

double likelihood(const FaultyRuns& runs, const FaultyStep& step, const RunSigns& seen) {
  const AnchorErrors errors;
  constexpr double busy_error = 0.07, spread_error = 0.6, least_spread = 0.02;
  double all = 1;
  if (seen.memory)
    all *= long_tailed(std::log(step.memory.of(seen.memory_kind) / *seen.memory) / errors.memory);
  if (seen.busy) all *= long_tailed((step.busy - *seen.busy) / busy_error);
  if (seen.spread)
    all *= long_tailed(std::log((step.spread + least_spread) / (*seen.spread + least_spread)) /
                       spread_error);
  if (seen.kernels) all *= likelihood_of_kernels(step.kernels, seen);
  if (!seen.step_time) return all;
  double times = 0;
  for (const double draw : runs.draws)
    times +=
        long_tailed((std::log(step.step_time / *seen.step_time) + draw) / errors.measured_run(0));
  return all * times / static_cast<double>(runs.draws.size());
}

}  // namespace

double busy_share(const Prediction& p) {
  constexpr std::array off{Cause::launch,        Cause::module_hooks,     Cause::routing_sync,
                           Cause::cpu_optimizer, Cause::offload_transfer, Cause::checkpoint_save,
                           Cause::other};
  double idle = p.breakdown.idle.value;
  for (const BreakdownRow& row : p.breakdown.rows)
    if (holds(off, row.cause)) idle += row.exposed.value;
  return std::clamp(1 - idle / p.step_time.value, 0.0, 1.0);
}

namespace {

// Kernels that wait for other ranks count, as a profile has them.
ProfiledTimes stated_times(const FaultyRuns& runs) {
  constexpr std::array collectives{Cause::gather_bytes,    Cause::gather_latency,
                                   Cause::gradient_reduce, Cause::moe_all_to_all,
                                   Cause::tensor_parallel, Cause::sequence_parallel,
                                   Cause::stage_transfer,  Cause::weight_sync};
  const KernelTimes& kernels = runs.steps.front().kernels;
  ProfiledTimes times{kernels.products, kernels.attention, kernels.other, 0, 0};
  for (const BreakdownRow& row : runs.stated.breakdown.rows) {
    const double all = row.exposed.value + row.hidden.value;
    if (holds(collectives, row.cause)) times.collectives += all;
    if (row.cause == Cause::offload_transfer) times.copies += all;
  }
  return times;
}

}  // namespace

RunSigns signs_of(std::span<const TrainerLog> logs, const FaultyRuns& runs, const Catalogue& data) {
  const Prediction& stated = runs.stated;
  RunSigns signs;
  std::vector<double> times;
  for (const TrainerLog& log : logs) {
    if (const auto time = seen_run(log, stated).step_time) times.push_back(*time);
    if (log.memory && *log.memory > signs.memory.value_or(0)) {
      signs.memory = log.memory;
      signs.memory_kind = log.memory_kind;
    }
    if (log.busy) signs.busy = log.busy;
    if (log.profile) signs.kernels = seen_kernels(*log.profile, data);
    if (log.profile && signs.kernels)
      signs.profile = ProfiledRun{.seen = times_of(*log.profile, data),
                                  .stated = stated_times(runs),
                                  .idle = log.profile->idle,
                                  .stated_idle = (1 - busy_share(stated)) * stated.step_time.value,
                                  .steps_known = log.profile->steps > 0};
    if (log.spread && log.spread->low > 0)
      signs.spread = std::log(log.spread->high / log.spread->low);
  }
  std::ranges::sort(times);
  if (!times.empty()) signs.step_time = quantile(times, 0.5);
  return signs;
}

FaultyRuns replay_faults(const FaultQuestion& question) {
  const Scenario scenario = load_scenario(question.data, question.scenario, question.settings);
  if (scenario.grpo)
    throw UserError(fmt::format("{}: faults of GRPO jobs are not described: ask for the learners",
                                question.scenario));
  FaultyRuns runs{.kinds = fault_kinds(question.data),
                  .stated = predict(scenario, Kept::figures),
                  .steps = {},
                  .draws = {}};
  std::vector<FaultyStep> possible = possible_steps(question, scenario, runs.kinds);
  in_workers(
      possible.size(), std::max<std::size_t>(question.workers, 1),
      [&](std::size_t i) { return replayed(question, possible[i].settings); },
      [&](std::size_t i, const Replayed& each) {
        possible[i].step_time = each.step_time;
        possible[i].busy = each.busy;
        possible[i].memory = each.memory;
        possible[i].kernels = each.kernels;
      });
  runs.steps.push_back({.fault = runs.kinds.size(),
                        .settings = {},
                        .step_time = runs.stated.step_time.value,
                        .busy = busy_share(runs.stated),
                        .spread = healthy_spread,
                        .memory = memory_figures(scenario, runs.stated.memory),
                        .kernels = kernel_times(step_input(scenario))});
  for (FaultyStep& step : possible)
    if (changes_something(step, runs.steps.front())) runs.steps.push_back(std::move(step));
  runs.draws = drawn_times(question, runs.stated);
  return runs;
}

std::vector<std::string> evidence_in(std::span<const FaultKind> kinds, std::string_view text) {
  std::vector<std::string> found;
  for (const FaultKind& kind : kinds)
    for (const std::string& word : kind.evidence)
      if (text.find(word) != std::string_view::npos) found.push_back(word);
  return found;
}

std::vector<Suspect> judge(const FaultyRuns& runs, const RunSigns& seen, std::string_view text) {
  std::vector<Suspect> suspects;
  double all = 0;
  for (std::size_t i = 0; i <= runs.kinds.size(); ++i) {
    Suspect suspect;
    double sum = 0, best = -1;
    std::size_t levels = 0;
    for (const FaultyStep& step : runs.steps) {
      if (step.fault != i) continue;
      const double each = likelihood(runs, step, seen);
      sum += each;
      levels += 1;
      if (each <= best) continue;
      best = each;
      suspect.likeliest = step;
    }
    if (levels == 0) continue;
    double prior = healthy_prior;
    if (i < runs.kinds.size()) {
      suspect.kind = &runs.kinds[i];
      suspect.evidence = evidence_in(std::span(suspect.kind, 1), text);
      prior = suspect.kind->prior * (suspect.evidence.empty() ? 1 : odds_of_word);
    }
    suspect.probability = prior * sum / static_cast<double>(levels);
    all += suspect.probability;
    suspects.push_back(std::move(suspect));
  }
  for (Suspect& each : suspects) each.probability /= all;
  std::ranges::stable_sort(suspects, std::ranges::greater(), &Suspect::probability);
  return suspects;
}

}  // namespace stepsim
