// This measures the bandwidth of a collective by message size.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/budget.hpp"
#include "sim/engine/player.hpp"
#include "sim/symmetry.hpp"
#include "sim/trace.hpp"
#include "workloads/collectives/plan.hpp"

namespace stepsim {

struct BandwidthQuestion {
  std::string operation{};    // a collective, or h2d, d2h
  std::vector<Rank> ranks{};  // empty: all
  std::vector<double> sizes{};
  PlanOptions options{};
  Folding folding = Folding::automatic;
  Player player{};
  double budget = usual_budget;  // operations, or flows that take as much
};

struct BandwidthRow {
  double bytes = 0;
  Seconds time;
  BytesPerSecond algorithm_bandwidth, bus_bandwidth;
  std::string algorithm, protocol, busiest_link;
};

struct BandwidthAnswer {
  std::vector<BandwidthRow> rows;
  std::size_t ranks = 0;
  Run run;  // all sizes one after the other
};

const std::vector<std::string>& bandwidth_operations();
// Returns nothing for h2d and d2h, which are no collectives.
std::optional<Collective> collective_of(std::string_view operation);

BandwidthAnswer measure_bandwidth(const Cluster& cluster, const BandwidthQuestion& question);

}  // namespace stepsim
