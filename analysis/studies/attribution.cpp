#include "analysis/studies/attribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/replay.hpp"

namespace stepsim {
namespace {

// Below this a difference is rounding.
constexpr double noticeable = 1e-9;

// Causes that take part, and one that is free throughout because it stands apart from them.
struct Players {
  std::vector<Cause> causes;
  CauseSet apart;
};

CauseSet causes_of(Coalition coalition, const std::vector<Cause>& players) {
  CauseSet causes;
  for (std::size_t i = 0; i < players.size(); ++i)
    if ((coalition >> i & 1) != 0) causes.add(players[i]);
  return causes;
}

// Sorted, each once: those of the plan, nobody, everybody, and each alone.
std::vector<Coalition> wanted_coalitions(const ShapleyPlan& plan) {
  std::vector<Coalition> wanted = plan.coalitions;
  for (std::size_t i = 0; i < plan.players; ++i) wanted.push_back(Coalition{1} << i);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

struct Times {
  std::vector<Coalition> coalitions;  // ascending
  std::vector<double> seconds;

  const double* find(Coalition coalition) const {
    const auto place = std::lower_bound(coalitions.begin(), coalitions.end(), coalition);
    if (place == coalitions.end() || *place != coalition) return nullptr;
    return &seconds[static_cast<std::size_t>(place - coalitions.begin())];
  }
  double of(Coalition coalition) const { return *find(coalition); }
};

Times replay_all(const Platform& platform, const OpGraph& graph, const Players& players,
                 std::vector<Coalition> coalitions, const AttributionOptions& options) {
  std::vector<std::function<std::string()>> tasks;
  tasks.reserve(coalitions.size());
  for (const Coalition coalition : coalitions)
    tasks.emplace_back([&, coalition] {
      const OpGraph small = contracted(graph, causes_of(coalition, players.causes) | players.apart);
      return fmt::format("{}", replay(platform, small).makespan.value);
    });
  Times times{std::move(coalitions), {}};
  times.seconds.reserve(tasks.size());
  for (const std::string& answer : in_workers(tasks, options.workers, options.progress))
    times.seconds.push_back(parse_quantity(answer)->value);
  return times;
}

void note_anomalies(const Times& times, const std::vector<Cause>& players, Attribution& result) {
  const double least = noticeable * result.step_time.value;
  for (std::size_t i = 0; i < times.coalitions.size(); ++i)
    for (std::size_t player = 0; player < players.size(); ++player) {
      const Coalition coalition = times.coalitions[i];
      if ((coalition >> player & 1) != 0) continue;
      const double* with = times.find(coalition | Coalition{1} << player);
      if (with == nullptr || *with - times.seconds[i] <= least) continue;
      ++result.anomalies;
      const Seconds slower{*with - times.seconds[i]};
      if (!result.anomaly || slower > result.anomaly->slower)
        result.anomaly = {players[player], causes_of(coalition, players), slower};
    }
}

}  // namespace

Attribution attribute(const Platform& platform, const OpGraph& graph,
                      const AttributionOptions& options) {
  Attribution result;
  result.active = active_causes(graph);
  const std::optional<Beginning> first = beginning_of(graph);
  Players players{members(result.active), {}};
  if (first) {
    players.apart.add(first->cause);
    std::erase(players.causes, first->cause);
  }
  const double apart = first ? first->seconds.value : 0;
  const std::size_t count = players.causes.size();
  const ShapleyPlan plan = plan_shapley(count, options.most_replays, options.seed);
  const Times times = replay_all(platform, graph, players, wanted_coalitions(plan), options);
  result.exact = plan.exact();
  result.replays = times.seconds.size();
  result.step_time = {times.of(0) + apart};
  result.rest = {times.of((Coalition{1} << count) - 1)};
  std::vector<double> saved;
  saved.reserve(plan.coalitions.size());
  for (const Coalition coalition : plan.coalitions)
    saved.push_back(times.of(0) - times.of(coalition));
  const std::vector<ShapleyValue> values = shapley_values(plan, saved);
  result.without.fill(result.step_time);
  for (std::size_t i = 0; i < count; ++i) {
    result.parts[index(players.causes[i])] = values[i];
    result.without[index(players.causes[i])] = {times.of(Coalition{1} << i) + apart};
  }
  if (first) {
    result.parts[index(first->cause)] = {apart, 0};
    result.without[index(first->cause)] = {times.of(0)};
  }
  note_anomalies(times, players.causes, result);
  return result;
}

}  // namespace stepsim
