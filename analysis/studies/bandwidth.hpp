// Bandwidth of a collective by message size, and how far it is from published measurements.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/measured.hpp"
#include "sim/symmetry.hpp"
#include "sim/trace.hpp"
#include "workloads/plan.hpp"

namespace stepsim {

struct BandwidthQuestion {
  std::string operation;    // a collective, or h2d, d2h
  std::vector<Rank> ranks;  // empty: all
  std::vector<double> sizes;
  PlanOptions options;
  Folding folding = Folding::automatic;
};

struct BandwidthRow {
  double bytes = 0;
  Seconds time;
  BytesPerSecond algorithm_bandwidth;
  BytesPerSecond bus_bandwidth;
  std::string algorithm;
  std::string protocol;
  std::string busiest_link;
};

struct BandwidthAnswer {
  std::vector<BandwidthRow> rows;
  std::size_t ranks = 0;
  Run run;  // all sizes one after the other
};

const std::vector<std::string>& bandwidth_operations();

// Replays, so once per process.
BandwidthAnswer measure_bandwidth(const Cluster& cluster, const BandwidthQuestion& question);

struct ComparedRow {
  MeasuredCollective measured;
  std::string cluster;   // empty: not modelled
  double predicted = 0;  // s
  double error = 0;      // predicted / measured - 1, of the time
  std::string algorithm;
  std::string reason;  // why it is not compared, or why it is far off
};

struct Comparison {
  std::vector<ComparedRow> rows;
  struct Share {
    std::size_t rows = 0;
    double median = 0;  // of the absolute error
    double p90 = 0;
    double mean = 0;  // signed
  };
  Share large;  // from 16 MiB
  Share small;
};

// Rows of other machines than `only` (when given) or other operations than `operation` (when not
// empty) are left out. Forks a worker per machine.
struct CompareOptions {
  std::optional<ClusterChoice> only;
  std::string operation;
  std::vector<std::pair<std::string, std::string>> reasons;  // id -> what is known about the row
};
Comparison compare(const std::string& data, std::span<const MeasuredCollective> rows,
                   const CompareOptions& options);

}  // namespace stepsim
