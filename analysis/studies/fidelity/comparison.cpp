#include "analysis/studies/fidelity/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/studies/predict/bandwidth.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {
namespace {

constexpr double large_from = 16.0 * 1024 * 1024;  // B

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

// Returns the algorithm only where the table says that the library was told; else "".
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

// A rate without a size is one that no longer depends on it.
double size_of(const MeasuredCollective& row) {
  return row.bytes > 0 ? row.bytes : 4e9;
}

double time_of(const MeasuredCollective& row) {
  if (row.time > 0) return row.time;
  const auto kind = collective_of(operation_of(row));
  const double factor = kind ? bus_factor(*kind, row.gpus) : 1;
  return row.rate > 0 ? size_of(row) * factor / row.rate : 0;
}

struct Timed {
  Seconds time;
  std::string algorithm;  // and its protocol
  static auto fields(auto& self) { return std::tie(self.time, self.algorithm); }
};
// A worker answers this about the rows of a machine.
struct ComparedAnswer {
  std::string machine, refused;  // why there is nothing to say
  std::vector<Timed> rows;
  static auto fields(auto& self) { return std::tie(self.machine, self.refused, self.rows); }
};

ComparedAnswer answer_of(const Catalogue& data, const MachineKey& key,
                         const std::vector<ComparedRow*>& rows) {
  const Cluster cluster =
      load_cluster(data, {.name = key.cluster, .nodes = key.nodes, .network = key.network});
  const std::vector<Rank> ranks = ranks_of(cluster, key.gpus);
  ComparedAnswer answer;
  if (ranks.size() != key.gpus) {
    answer.refused = fmt::format("{} GPUs do not fit on {} x {}", key.gpus, key.nodes, key.cluster);
    return answer;
  }
  BandwidthQuestion question{.operation = key.operation,
                             .ranks = ranks,
                             .sizes = {},
                             .options = {.algorithm = key.algorithm, .protocol = ""}};
  for (const ComparedRow* row : rows) question.sizes.push_back(size_of(row->measured));
  answer.machine = key.cluster;
  if (key.nodes > 1) answer.machine += fmt::format(" x{}, {}", key.nodes, cluster.network->name);
  try {
    for (const BandwidthRow& row : measure_bandwidth(cluster, question).rows)
      answer.rows.push_back({row.time, fmt::format("{} {}", row.algorithm, row.protocol)});
  } catch (const UserError& error) {
    answer.refused = error.what();
  }
  return answer;
}

void predict(const Catalogue& data, const MachineKey& key, const std::vector<ComparedRow*>& rows) {
  const ComparedAnswer answer = in_worker([&] { return answer_of(data, key, rows); });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ComparedRow& row = *rows[i];
    if (!answer.refused.empty()) {
      row.note = answer.refused;
      continue;
    }
    row.machine = answer.machine;
    row.time = time_of(row.measured);
    row.predicted = answer.rows[i].time.value;
    row.algorithm = answer.rows[i].algorithm;
    row.error = row.predicted / row.time - 1;
  }
}

Errors::Share share_of(const std::vector<double>& errors) {
  Errors::Share share{.rows = errors.size()};
  if (errors.empty()) return share;
  std::vector<double> sizes;
  for (const double error : errors) {
    sizes.push_back(std::fabs(error));
    share.mean += error / static_cast<double>(errors.size());
  }
  std::ranges::sort(sizes);
  const std::size_t n = sizes.size();
  share.median = (sizes[(n - 1) / 2] + sizes[n / 2]) / 2;
  share.p90 = sizes[std::min(n - 1, static_cast<std::size_t>(std::ceil(0.9 * double(n))) - 1)];
  return share;
}

template <class Wanted>
Errors errors_of(const std::vector<ComparedRow>& rows, const Wanted& wanted) {
  Errors errors;
  std::vector<double> small, large;
  double farthest = 0;
  for (const ComparedRow& row : rows) {
    if (!row.compared() || !wanted(row)) continue;
    (size_of(row.measured) >= large_from ? large : small).push_back(row.error);
    const double factor = std::fabs(std::log(1 + row.error));
    if (factor >= farthest) errors.worst = row.error;
    farthest = std::max(farthest, factor);
  }
  errors.small = share_of(small);
  errors.large = share_of(large);
  return errors;
}

void summarise(Comparison& comparison) {
  for (const ComparedRow& row : comparison.rows) {
    if (!row.compared()) continue;
    const auto same = [&row](const auto& other) {
      return other.source == row.measured.source && other.machine == row.machine;
    };
    std::vector<SourceErrors>& sources = comparison.sources;
    if (std::ranges::any_of(sources, same)) continue;
    const auto wanted = [&row](const ComparedRow& other) {
      return other.measured.source == row.measured.source && other.machine == row.machine;
    };
    sources.push_back({row.measured.source, row.machine, errors_of(comparison.rows, wanted)});
  }
  comparison.all = errors_of(comparison.rows, [](const ComparedRow&) { return true; });
}

// Why a row cannot be compared, or nothing.
std::string obstacle(const ComparedRow& row, bool has_machine) {
  const auto& known = bandwidth_operations();
  if (!holds(known, row.operation))
    return fmt::format("{} is no operation of this command", row.operation);
  if (!has_machine) return "no machine of the catalogue";
  if (time_of(row.measured) <= 0) return "the row has neither time nor bus bandwidth";
  return "";
}

}  // namespace

Comparison compare(const Catalogue& data, std::span<const MeasuredCollective> rows,
                   const CompareOptions& options) {
  Comparison result;
  result.rows.reserve(rows.size());  // the work below points into it
  std::map<MachineKey, std::vector<ComparedRow*>> work;
  for (const MeasuredCollective& row : rows) {
    const std::string operation = operation_of(row);
    if (!options.operation.empty() && operation != options.operation) continue;
    const auto machine = machine_of(data, row);
    if (options.only && (!machine || machine->name != options.only->name)) continue;
    ComparedRow& made = result.rows.emplace_back();
    made.measured = row;
    made.operation = operation;
    bool left_out = false;
    for (const RowNote& note : options.notes)
      if (note.id == row.id) {
        made.note = note.note;
        left_out = note.left_out;
      }
    if (left_out) continue;
    if (std::string why = obstacle(made, machine.has_value()); !why.empty())
      made.note = std::move(why);
    else
      work[{machine->name, machine->network, operation, algorithm_of(row), row.nodes, row.gpus}]
          .push_back(&made);
  }
  for (const auto& [key, list] : work) predict(data, key, list);
  summarise(result);
  return result;
}

}  // namespace stepsim
