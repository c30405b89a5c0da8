#include "analysis/studies/anchor/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

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
// Two faults at once are as likely beforehand as both by chance, times this. It is a guess, between
// 0.05 and 1: with 0.2 about one run in twelve that somebody asks about has two.
constexpr double prior_of_two = 0.2;
constexpr std::size_t most_pairs = 32;  // that are replayed: as many as there are faults alone

// A worker says this of one replay; a time of 0: it cannot run so.
struct Replayed {
  double step_time = 0, busy = 0;
  MemoryFigures memory;
  KernelTimes kernels;
};

Replayed replayed(const FaultQuestion& question, const std::vector<Setting>& own) {
  std::vector<Setting> settings(question.settings.begin(), question.settings.end());
  append(settings, own);
  try {
    const Scenario scenario = load_scenario(question.data, question.scenario, settings);
    const Prediction p = predict(scenario, Kept::figures);
    return {p.step_time.value, busy_share(p), memory_figures(scenario, p.memory),
            kernel_times(step_input(scenario))};
  } catch (const UserError&) {
    return {};  // what the fault sets does not go with this scenario
  }
}

void replay_all(const FaultQuestion& question, std::vector<FaultyStep>& steps) {
  in_workers(
      steps.size(), std::max<std::size_t>(question.workers, 1),
      [&](std::size_t i) { return replayed(question, steps[i].settings); },
      [&](std::size_t i, const Replayed& each) {
        steps[i].step_time = each.step_time;
        steps[i].busy = each.busy;
        steps[i].memory = each.memory;
        steps[i].kernels = each.kernels;
      });
}

std::vector<FaultyStep> possible_steps(const Scenario& scenario,
                                       const std::vector<FaultKind>& kinds) {
  std::vector<FaultyStep> steps;
  const auto ranks = static_cast<std::int64_t>(scenario.cluster.ranks());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (ranks < kinds[i].gpus || scenario.cluster.nodes < kinds[i].nodes) continue;
    for (const std::vector<Setting>& level : kinds[i].levels)
      if (std::vector<Setting> own = settings_of_level(level, scenario); !own.empty())
        steps.push_back({.faults = {i}, .settings = std::move(own), .spread = kinds[i].spread});
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
  std::vector<FaultyStep> possible = possible_steps(scenario, runs.kinds);
  replay_all(question, possible);
  runs.steps.push_back({.step_time = runs.stated.step_time.value,
                        .busy = busy_share(runs.stated),
                        .memory = memory_figures(scenario, runs.stated.memory),
                        .kernels = kernel_times(step_input(scenario))});
  for (FaultyStep& step : possible)
    if (changes_something(step, runs.steps.front())) runs.steps.push_back(std::move(step));
  for (FaultyStep& step : runs.steps)
    step.levels =
        static_cast<std::size_t>(std::ranges::count(runs.steps, step.faults, &FaultyStep::faults));
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

namespace {

double prior_of(const FaultyRuns& runs, const FaultyStep& step, std::string_view text) {
  if (step.faults.empty()) return healthy_prior;
  double prior = step.faults.size() > 1 ? prior_of_two : 1;
  for (const std::size_t fault : step.faults) {
    const FaultKind& kind = runs.kinds[fault];
    prior *= kind.prior * (evidence_in(std::span(&kind, 1), text).empty() ? 1 : odds_of_word);
  }
  return prior / static_cast<double>(step.levels);
}

bool set_the_same(const FaultyStep& a, const FaultyStep& b) {
  return std::ranges::any_of(a.settings, [&](const Setting& own) {
    return holds(b.settings, own.first, &Setting::first);
  });
}

// Returns two faults at once as if neither knew of the other. It says which pairs to replay, and
// nothing else.
FaultyStep together(const FaultyStep& a, const FaultyStep& b, const FaultyStep& healthy) {
  FaultyStep step{.faults = {a.faults.front(), b.faults.front()},
                  .levels = a.levels * b.levels,
                  .settings = a.settings,
                  .step_time = a.step_time * b.step_time / healthy.step_time,
                  .busy = a.busy * b.busy / healthy.busy,
                  .spread = std::max(a.spread, b.spread)};
  append(step.settings, b.settings);
  using Memory = MemoryFigures;
  for (const auto figure :
       {&Memory::allocated, &Memory::reserved, &Memory::device, &Memory::needed})
    step.memory.*figure = a.memory.*figure * b.memory.*figure / healthy.memory.*figure;
  for (const auto part : {&KernelTimes::products, &KernelTimes::attention, &KernelTimes::other})
    if (healthy.kernels.*part > 0)
      step.kernels.*part = a.kernels.*part * b.kernels.*part / healthy.kernels.*part;
  return step;
}

}  // namespace

void replay_pairs(const FaultQuestion& question, const RunSigns& seen, std::string_view text,
                  FaultyRuns& runs) {
  std::vector<FaultyStep> pairs;
  std::vector<std::pair<double, std::size_t>> order;
  const FaultyStep& healthy = runs.steps.front();
  for (std::size_t a = 1; a < runs.steps.size(); ++a)
    for (std::size_t b = a + 1; b < runs.steps.size(); ++b) {
      if (runs.steps[a].faults == runs.steps[b].faults) continue;
      if (set_the_same(runs.steps[a], runs.steps[b])) continue;
      FaultyStep step = together(runs.steps[a], runs.steps[b], healthy);
      order.emplace_back(-prior_of(runs, step, text) * likelihood(runs, step, seen), pairs.size());
      pairs.push_back(std::move(step));
    }
  std::ranges::sort(order);
  order.resize(std::min(order.size(), most_pairs));
  std::vector<FaultyStep> chosen;
  chosen.reserve(order.size());
  for (const auto& [likely, place] : order) chosen.push_back(std::move(pairs[place]));
  replay_all(question, chosen);
  for (FaultyStep& step : chosen)
    if (step.step_time > 0) runs.steps.push_back(std::move(step));
}

std::vector<Suspect> judge(const FaultyRuns& runs, const RunSigns& seen, std::string_view text) {
  std::map<std::vector<std::size_t>, Suspect> found;
  std::map<std::vector<std::size_t>, double> best;
  double all = 0;
  for (const FaultyStep& step : runs.steps) {
    Suspect& suspect = found[step.faults];
    const double likely = prior_of(runs, step, text) * likelihood(runs, step, seen);
    suspect.probability += likely;
    all += likely;
    double& most = best.try_emplace(step.faults, -1).first->second;
    if (likely <= most) continue;
    most = likely;
    suspect.likeliest = step;
  }
  std::vector<Suspect> suspects;
  suspects.reserve(found.size());
  for (auto& [faults, suspect] : found) {
    suspect.probability /= all;
    for (const std::size_t fault : faults) {
      suspect.kinds.push_back(&runs.kinds[fault]);
      append(suspect.evidence, evidence_in(std::span(&runs.kinds[fault], 1), text));
    }
    suspects.push_back(std::move(suspect));
  }
  std::ranges::stable_sort(suspects, std::ranges::greater(), &Suspect::probability);
  return suspects;
}

}  // namespace stepsim
