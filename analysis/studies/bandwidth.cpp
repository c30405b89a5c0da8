#include "analysis/studies/bandwidth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/studies/worker.hpp"
#include "sim/error.hpp"
#include "sim/replay.hpp"
#include "workloads/program_builder.hpp"

namespace stepsim {
namespace {

std::vector<Rank> all_ranks(const Cluster& cluster) {
  std::vector<Rank> ranks(cluster.ranks());
  std::iota(ranks.begin(), ranks.end(), Rank{0});
  return ranks;
}

std::optional<Collective> collective_of(std::string_view operation) {
  for (std::size_t i = 0; i < collective_kinds.size(); ++i)
    if (collective_kinds[i] == operation) return static_cast<Collective>(i);
  return std::nullopt;
}

CollectivePlan plan_of(const Cluster& cluster, const BandwidthQuestion& question,
                       const std::vector<Rank>& ranks) {
  if (const auto kind = collective_of(question.operation))
    return plan_collective(cluster, *kind, {ranks}, question.options);
  return plan_copy(cluster, question.operation == "h2d" ? Copy::h2d : Copy::d2h, ranks);
}

// Only what the sizes will use is folded and built.
void keep_used(CollectivePlan& plan, std::span<const double> sizes) {
  std::vector<std::uint8_t> used(plan.candidates.size(), 0);
  for (const double bytes : sizes) used[choose(plan, Bytes{bytes})] = 1;
  std::vector<Candidate> kept;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i] != 0) kept.push_back(std::move(plan.candidates[i]));
  plan.candidates = std::move(kept);
}

// One operation per size, each after the one before.
OpGraph program(const Traffic& traffic, const BandwidthQuestion& question) {
  ProgramBuilder builder(traffic);
  for (std::size_t i = 0; i < question.sizes.size(); ++i) {
    builder.collective(
        0,
        {.kind = collective_of(question.operation) ? OpKind::collective : OpKind::transfer,
         .stream = Stream::gather,
         .layer = static_cast<std::int16_t>(i),  // which size it is for
         .name = builder.graph().name(question.operation),
         .bytes = {question.sizes[i]}},
        Stream::gather);
    builder.everywhere(
        {.kind = OpKind::join, .stream = Stream::gather, .name = builder.graph().name("done")});
  }
  return builder.take();
}

struct MachineKey {
  std::string cluster, network, operation, algorithm;
  std::uint32_t nodes, gpus;
  auto operator<=>(const MachineKey&) const = default;
};

std::string operation_of(const MeasuredCollective& row) {
  if (row.collective == "h2d_memcpy") return "h2d";
  if (row.collective == "d2h_memcpy") return "d2h";
  if (row.collective == "p2p_unidirectional") return "send_recv";
  return row.collective;
}

// Only where the table says that the library was told.
std::string algorithm_of(const MeasuredCollective& row) {
  if (row.algorithm.starts_with("Ring") || row.algorithm == "ring") return "ring";
  return row.algorithm == "tree" ? "tree" : "";
}

std::vector<Rank> ranks_of(const Cluster& cluster, std::uint32_t gpus) {
  const std::uint32_t per_node = std::max(1u, gpus / cluster.nodes);
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < cluster.ranks() && ranks.size() < gpus; ++rank)
    if (place_of(cluster, rank).index < per_node) ranks.push_back(rank);
  return ranks;
}

double measured_time(const MeasuredCollective& row, double bytes) {
  if (row.time > 0) return row.time;
  const auto kind = collective_of(operation_of(row));
  const double factor = kind ? bus_factor(*kind, row.gpus) : 1;
  return row.rate > 0 ? bytes * factor / row.rate : 0;
}

// A rate without a size is one that no longer depends on it.
double size_of(const MeasuredCollective& row) {
  return row.bytes > 0 ? row.bytes : 4e9;
}

void predict(const std::string& data, const MachineKey& key,
             const std::vector<ComparedRow*>& rows) {
  const std::string answer = in_worker([&] {
    const Cluster cluster =
        load_cluster(data, {.name = key.cluster, .nodes = key.nodes, .network = key.network});
    BandwidthQuestion question{.operation = key.operation,
                               .ranks = ranks_of(cluster, key.gpus),
                               .sizes = {},
                               .options = {.algorithm = key.algorithm, .protocol = ""}};
    for (const ComparedRow* row : rows) question.sizes.push_back(size_of(row->measured));
    std::string lines;
    for (const BandwidthRow& row : measure_bandwidth(cluster, question).rows)
      lines += fmt::format("{} {} {}\n", row.time.value, row.algorithm, row.protocol);
    return lines;
  });
  std::size_t at = 0;
  for (ComparedRow* row : rows) {
    const std::size_t end = answer.find('\n', at);
    const std::string line = answer.substr(at, end - at);
    at = end + 1;
    const std::size_t space = line.find(' ');
    row->predicted = parse_quantity(line.substr(0, space))->value;
    row->algorithm = line.substr(space + 1);
    row->cluster = key.network.empty() || key.nodes < 2
                       ? key.cluster
                       : fmt::format("{} x{} {}", key.cluster, key.nodes, key.network);
    row->error = row->predicted / measured_time(row->measured, size_of(row->measured)) - 1;
  }
}

Comparison::Share share_of(const std::vector<double>& errors) {
  Comparison::Share share{.rows = errors.size()};
  if (errors.empty()) return share;
  std::vector<double> sizes;
  for (const double error : errors) {
    sizes.push_back(std::fabs(error));
    share.mean += error / static_cast<double>(errors.size());
  }
  std::sort(sizes.begin(), sizes.end());
  const std::size_t n = sizes.size();
  share.median = (sizes[(n - 1) / 2] + sizes[n / 2]) / 2;
  share.p90 = sizes[std::min(n - 1, static_cast<std::size_t>(std::ceil(0.9 * double(n))) - 1)];
  return share;
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

BandwidthAnswer measure_bandwidth(const Cluster& cluster, const BandwidthQuestion& question) {
  const std::vector<Rank> ranks = question.ranks.empty() ? all_ranks(cluster) : question.ranks;
  std::vector<CollectivePlan> plans{plan_of(cluster, question, ranks)};
  keep_used(plans.front(), question.sizes);
  const Traffic traffic = make_traffic(machinery_of(cluster), std::move(plans), question.folding);
  BandwidthAnswer answer;
  answer.ranks = ranks.size();
  answer.run.platform = traffic.folded.platform;
  answer.run.lane_sizes = traffic.folded.lane_sizes;
  answer.run.constants = cluster.constants;
  answer.run.graph = program(traffic, question);
  answer.run.trace = replay(answer.run.platform, answer.run.graph);

  const auto kind = collective_of(question.operation);
  std::vector<double> took(question.sizes.size(), 0);  // the longest over the groups
  for (std::size_t i = 0; i < answer.run.graph.size(); ++i) {
    const Op& op = answer.run.graph.ops()[i];
    if (op.layer < 0) continue;
    double& longest = took[static_cast<std::size_t>(op.layer)];
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

Comparison compare(const std::string& data, std::span<const MeasuredCollective> rows,
                   const CompareOptions& options) {
  Comparison result;
  result.rows.reserve(rows.size());
  std::map<MachineKey, std::vector<ComparedRow*>> work;
  for (const MeasuredCollective& row : rows) {
    const std::string operation = operation_of(row);
    if (!options.operation.empty() && operation != options.operation) continue;
    const auto machine = machine_of(data, row);
    if (options.only && (!machine || machine->name != options.only->name)) continue;
    ComparedRow& made = result.rows.emplace_back();
    made.measured = row;
    const auto& known = bandwidth_operations();
    if (std::find(known.begin(), known.end(), operation) == known.end())
      made.reason = fmt::format("{} is no operation of this command", row.collective);
    else if (!machine)
      made.reason = "no machine of the catalogue";
    else if (measured_time(row, size_of(row)) <= 0)
      made.reason = "the row has neither time nor bus bandwidth";
    else
      work[{machine->name, machine->network, operation, algorithm_of(row), row.nodes, row.gpus}]
          .push_back(&made);
  }
  for (const auto& [key, list] : work) predict(data, key, list);

  std::vector<double> large, small;
  for (ComparedRow& row : result.rows) {
    for (const auto& [id, reason] : options.reasons)
      if (id == row.measured.id) row.reason = reason;
    if (row.cluster.empty()) continue;
    (size_of(row.measured) >= 16.0 * 1024 * 1024 ? large : small).push_back(row.error);
  }
  result.large = share_of(large);
  result.small = share_of(small);
  return result;
}

}  // namespace stepsim
