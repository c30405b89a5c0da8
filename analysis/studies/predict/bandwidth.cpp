#include "analysis/studies/predict/bandwidth.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/program/program_builder.hpp"

namespace stepsim {
namespace {

std::vector<Rank> all_ranks(const Cluster& cluster) {
  std::vector<Rank> ranks(cluster.ranks());
  std::iota(ranks.begin(), ranks.end(), Rank{0});
  return ranks;
}

CollectivePlan plan_of(const Cluster& cluster, const BandwidthQuestion& question,
                       const std::vector<Rank>& ranks) {
  if (const auto kind = collective_of(question.operation))
    return plan_collective(cluster, *kind, {ranks}, question.options);
  return plan_copy(cluster, question.operation == "h2d" ? Copy::h2d : Copy::d2h, ranks);
}

// Drops the candidates that no size uses, which need not be folded and built.
void keep_used(CollectivePlan& plan, std::span<const double> sizes) {
  std::vector<std::uint8_t> used(plan.candidates.size(), 0);
  for (const double bytes : sizes) used[choose(plan, Bytes{bytes})] = 1;
  std::vector<Candidate> kept;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i] != 0) kept.push_back(std::move(plan.candidates[i]));
  plan.candidates = std::move(kept);
}

// A flow takes this much beside an operation: one of very many rounds, and one of a single round.
constexpr double flow_of_many = 20, flow_of_one = 3;

double flows_between_ends(const CollectivePlan& plan) {
  double flows = 0;
  for (const Candidate& candidate : plan.candidates)
    for (const Pattern& pattern : candidate.patterns)
      for (const Round& round : pattern.rounds)
        flows += std::pow(static_cast<double>(round.exchange.ends.size()), 2);
  return flows;
}

// One operation per size, each after the one before.
struct SizedProgram {
  OpGraph graph;
  std::vector<std::pair<std::size_t, std::size_t>>
      operations;  // per size: first, and one past last
};

SizedProgram program(const Traffic& traffic, const BandwidthQuestion& question) {
  ProgramBuilder builder(traffic);
  SizedProgram made;
  for (std::size_t i = 0; i < question.sizes.size(); ++i) {
    const std::size_t first = builder.graph().size();
    builder.collective(
        0,
        {.kind = collective_of(question.operation) ? OpKind::collective : OpKind::transfer,
         .stream = Stream::gather,
         .name = builder.graph().name(question.operation),
         .bytes = {question.sizes[i]}},
        Stream::gather);
    made.operations.emplace_back(first, builder.graph().size());
    builder.everywhere(
        {.kind = OpKind::join, .stream = Stream::gather, .name = builder.graph().name("done")});
  }
  made.graph = builder.take();
  return made;
}

}  // namespace

const std::vector<std::string>& bandwidth_operations() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = collective_kinds;
    all.insert(all.end(), {"h2d", "d2h"});
    return all;
  }();
  return names;
}

std::optional<Collective> collective_of(std::string_view operation) {
  for (std::size_t i = 0; i < collective_kinds.size(); ++i)
    if (collective_kinds[i] == operation) return static_cast<Collective>(i);
  return std::nullopt;
}

BandwidthAnswer measure_bandwidth(const Cluster& cluster, const BandwidthQuestion& question) {
  const std::vector<Rank> ranks = question.ranks.empty() ? all_ranks(cluster) : question.ranks;
  if (question.options.detail == Detail::stepped)
    require_budget(flow_of_many * std::pow(static_cast<double>(ranks.size()), 2), question.budget,
                   "take fewer ranks or --detail fluid");
  std::vector<CollectivePlan> plans(1);  // a list of values would copy the patterns
  plans.front() = plan_of(cluster, question, ranks);
  keep_used(plans.front(), question.sizes);
  if (question.folding == Folding::off)
    require_budget(flow_of_one * flows_between_ends(plans.front()), question.budget,
                   "take fewer ranks or --fold auto");
  const Traffic traffic = make_traffic(machinery_of(cluster), std::move(plans), question.folding);
  BandwidthAnswer answer;
  answer.ranks = ranks.size();
  answer.run.platform = traffic.folded.platform;
  answer.run.lane_sizes = traffic.folded.lane_sizes;
  answer.run.constants = cluster.constants;
  SizedProgram sized = program(traffic, question);
  answer.run.graph = std::move(sized.graph);
  answer.run.trace = question.player.play(answer.run.platform, answer.run.graph);

  const auto kind = collective_of(question.operation);
  std::vector<double> took;  // the longest over the groups
  for (const auto& [first, end] : sized.operations) {
    double& longest = took.emplace_back(0);
    for (std::size_t i = first; i < end; ++i)
      longest = std::max(longest, answer.run.trace.finish[i] - answer.run.trace.start[i]);
  }
  for (std::size_t i = 0; i < question.sizes.size(); ++i) {
    const double bytes = question.sizes[i];
    const Candidate& used =
        traffic.plans.front().candidates[choose(traffic.plans.front(), Bytes{bytes})];
    BandwidthRow row{.bytes = bytes,
                     .time = {took[i]},
                     .algorithm_bandwidth = {},
                     .bus_bandwidth = {},
                     .algorithm = used.algorithm,
                     .protocol = used.protocol,
                     .busiest_link = ""};
    if (took[i] > 0) row.algorithm_bandwidth = Bytes{bytes} / row.time;
    row.bus_bandwidth = row.algorithm_bandwidth * (kind ? bus_factor(*kind, ranks.size()) : 1);
    if (used.cost.per_byte > 0) row.busiest_link = link_of(cluster, used.cost.busiest).name;
    answer.rows.push_back(std::move(row));
  }
  return answer;
}

}  // namespace stepsim
