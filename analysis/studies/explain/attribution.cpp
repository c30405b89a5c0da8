#include "analysis/studies/explain/attribution.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "sim/base/lists.hpp"
#include "sim/engine/own/replay.hpp"

namespace stepsim {
namespace {

// Below this a difference is rounding.
constexpr double noticeable = 1e-9;

// Causes that take part, and one that is free throughout because it stands apart from them.
struct CausePlayers {
  std::vector<Cause> causes;
  CauseSet apart;
};

CauseSet causes_of(Coalition coalition, const std::vector<Cause>& players) {
  CauseSet causes;
  for (std::size_t i = 0; i < players.size(); ++i)
    if ((coalition >> i & 1) != 0) causes.add(players[i]);
  return causes;
}

// So many pairs of orders are read out of all combinations.
constexpr std::size_t pairs_of_exact = 24;

using Times = std::map<Coalition, double>;

// Those of the plan that are not known yet, and each cause alone; sorted, each once.
std::vector<Coalition> wanted_coalitions(const ShapleyPlan& plan, const Times& known, bool alone) {
  std::set<Coalition> wanted(plan.coalitions.begin(), plan.coalitions.end());
  wanted.insert({Coalition{0}, (Coalition{1} << plan.players) - 1});
  for (std::size_t i = 0; alone && i < plan.players; ++i) wanted.insert(Coalition{1} << i);
  std::erase_if(wanted, [&](Coalition coalition) { return known.contains(coalition); });
  return {wanted.begin(), wanted.end()};
}

void replay_all(const FreeReplay& replayed, const CausePlayers& players,
                const std::vector<Coalition>& coalitions, const AttributionOptions& options,
                Times& times) {
  if (options.workers == 0) {
    for (const Coalition coalition : coalitions)
      times[coalition] = replayed(causes_of(coalition, players.causes) | players.apart).value;
    return;
  }
  Tasks<Seconds> tasks;
  tasks.reserve(coalitions.size());
  for (const Coalition coalition : coalitions)
    tasks.emplace_back(
        [&, coalition] { return replayed(causes_of(coalition, players.causes) | players.apart); });
  const std::vector<Seconds> answers = in_workers(tasks, options.workers, options.progress);
  for (std::size_t i = 0; i < answers.size(); ++i) times[coalitions[i]] = answers[i].value;
}

void note_anomalies(const Times& times, const std::vector<Cause>& players, Attribution& result) {
  const double least = noticeable * result.step_time.value;
  for (const auto& [coalition, seconds] : times)
    for (std::size_t player = 0; player < players.size(); ++player) {
      if ((coalition >> player & 1) != 0) continue;
      const auto with = times.find(coalition | Coalition{1} << player);
      if (with == times.end() || with->second - seconds <= least) continue;
      ++result.anomalies;
      const Seconds slower{with->second - seconds};
      if (!result.anomaly || slower > result.anomaly->slower)
        result.anomaly = {players[player], causes_of(coalition, players), slower};
    }
}

// What is saved by each coalition of the plan.
std::vector<double> saved_by(const ShapleyPlan& plan, const Times& times) {
  return mapped(plan.coalitions,
                [&](Coalition coalition) { return times.at(0) - times.at(coalition); });
}

ByCause<double> by_cause(const CausePlayers& players, std::span<const double> values) {
  ByCause<double> result{};
  for (std::size_t i = 0; i < values.size(); ++i) result[index(players.causes[i])] = values[i];
  return result;
}

// What single pairs of the orders say.
std::vector<ByCause<double>> read_pairs(const ShapleyPlan& plan, const CausePlayers& players,
                                        const Times& times, std::uint64_t seed) {
  std::vector<ByCause<double>> pairs;
  const auto add = [&](const ShapleyPlan& some) {
    for (const std::vector<double>& pair : pair_values(some, saved_by(some, times)))
      pairs.push_back(by_cause(players, pair));
  };
  if (!plan.exact()) add(plan);
  for (std::size_t i = 0; plan.exact() && i < pairs_of_exact; ++i)
    add(plan_pair(players.causes.size(), seed, i));
  return pairs;
}

}  // namespace

Attribution attribute(CauseSet active, const std::optional<Beginning>& first,
                      const FreeReplay& replayed, const AttributionOptions& options) {
  Attribution result;
  result.active = active;
  CausePlayers players{members(active), {}};
  if (first) {
    players.apart.add(first->cause);
    std::erase(players.causes, first->cause);
  }
  const double apart = first ? first->seconds.value : 0;
  const std::size_t count = players.causes.size();
  const bool alone = !options.only_pair;
  Times times;
  const auto worth = [&](const ShapleyPlan& plan) {
    replay_all(replayed, players, wanted_coalitions(plan, times, alone), options, times);
    return saved_by(plan, times);
  };
  const auto [plan, values] =
      options.only_pair
          ? study_plan(plan_pair(count, options.seed, *options.only_pair), worth)
          : study_shapley(count, options.most_replays, options.precise.value, options.seed, worth);
  result.exact = plan.exact();
  result.replays = times.size();
  result.step_time = {times.at(0) + apart};
  result.rest = {times.at((Coalition{1} << count) - 1)};
  result.without.fill(result.step_time);
  result.pairs = read_pairs(plan, players, times, options.seed);
  for (std::size_t i = 0; i < count; ++i) {
    result.parts[index(players.causes[i])] = values[i];
    if (alone) result.without[index(players.causes[i])] = {times.at(Coalition{1} << i) + apart};
  }
  if (first) {
    result.parts[index(first->cause)] = {apart, 0};
    for (ByCause<double>& pair : result.pairs) pair[index(first->cause)] = apart;
    result.without[index(first->cause)] = {times.at(0)};
  }
  note_anomalies(times, players.causes, result);
  return result;
}

Attribution attribute(const Platform& platform, const OpGraph& graph,
                      const AttributionOptions& options) {
  const Replayer replayer(platform, graph);
  const auto replayed = [&](CauseSet free) {
    return replayer.play(Watched::makespan, free).makespan;
  };
  return attribute(active_causes(graph), beginning_of(graph), replayed, options);
}

}  // namespace stepsim
