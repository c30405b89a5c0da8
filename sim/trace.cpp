#include "sim/trace.hpp"

namespace stepsim {
namespace {

constexpr std::string_view simgrid_name = "SimGrid ";

}  // namespace

std::string name_of(const PlayedBy& by) {
  return by.simgrid > 0 ? std::string(simgrid_name) + by.version : "own";
}

PlayedBy played_by(std::string_view name) {
  if (!name.starts_with(simgrid_name)) return {.own = 1};
  return {.simgrid = 1, .version = std::string(name.substr(simgrid_name.size()))};
}

PlayedBy together(const PlayedBy& one, const PlayedBy& other) {
  PlayedBy both = one.simgrid > 0 ? one : other;
  both.own = one.own + other.own;
  both.simgrid = one.simgrid + other.simgrid;
  both.simgrid_would_take = one.simgrid_would_take + other.simgrid_would_take;
  if (one.difference && other.difference)
    both.difference = std::max(*one.difference, *other.difference);
  both.energy_difference = std::max(one.energy_difference, other.energy_difference);
  return both;
}

bool times_make_sense(const Trace& trace) {
  const double end = trace.makespan.value;
  if (!(end >= 0) || end > 1e12) return false;
  const double rounding = 1e-9 * end;
  for (std::size_t i = 0; i < trace.start.size(); ++i) {
    const double ready = trace.ready[i], start = trace.start[i], finish = trace.finish[i];
    if (!(ready >= -rounding && start >= ready - rounding && finish >= start - rounding &&
          finish <= end + rounding))
      return false;
  }
  return true;
}

std::vector<double> first_arrivals(const OpGraph& graph, const Trace& trace) {
  std::vector<double> first(graph.size());
  std::vector<std::pair<Rank, double>> arrivals;  // per rank: when its last predecessor finished
  for (std::size_t i = 0; i < graph.size(); ++i) {
    arrivals.clear();
    for (const OpId from : graph.predecessors(OpId{static_cast<std::uint32_t>(i)})) {
      const Rank rank = graph[from].rank;
      const double time = trace.finish[index(from)];
      const auto place =
          std::ranges::find_if(arrivals, [rank](const auto& entry) { return entry.first == rank; });
      if (place == arrivals.end())
        arrivals.emplace_back(rank, time);
      else
        place->second = std::max(place->second, time);
    }
    first[i] = trace.start[i];
    for (const auto& [rank, time] : arrivals) first[i] = std::min(first[i], time);
  }
  return first;
}

double wait_begins(const OpGraph& graph, const Trace& trace, OpId wait) {
  double done = 0;
  for (const OpId before : graph.predecessors(wait))
    if (graph[before].pattern == no_pattern && graph[before].rank == graph[wait].rank)
      done = std::max(done, trace.finish[index(before)]);
  return done;
}

}  // namespace stepsim
