// A plan says which algorithm and protocol carry a collective, chosen by fabric, group and size as
// the libraries do it: the cheapest by a closed-form estimate.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "sim/symmetry.hpp"
#include "workloads/collectives/collectives.hpp"

namespace stepsim {

// Time of a pattern when nothing else runs: fixed + bytes x per_byte.
struct Cost {
  Seconds fixed;
  double per_byte = 0;  // s/B: the busiest link of each round
  LinkId busiest{};     // the one that takes longest of all

  Seconds at(Bytes bytes) const { return {fixed.value + bytes.value * per_byte}; }
};

struct Candidate {
  std::string algorithm, protocol;
  Family patterns{};  // one per group
  Cost cost{};        // of all groups together, since they run together
  Timing timing{};
};

// One kind of collective in groups that do it at the same time, with all ways to carry it.
struct CollectivePlan {
  Collective kind{};
  std::vector<Group> groups;
  std::vector<Candidate> candidates;
  std::vector<Candidate> all_ways{};  // of a signal: to choose among at other rates, no patterns
};

bool spans_nodes(const Cluster& cluster, const Group& group);

struct PlanOptions {
  std::string algorithm{};  // empty: those that the fabric's library considers
  std::string protocol{};   // empty: all
  Detail detail = Detail::fluid;
};

// Throws UserError when no algorithm suits, or a group is empty, repeats a rank, or names a rank
// outside the cluster.
CollectivePlan plan_collective(const Cluster& cluster, Collective kind, std::vector<Group> groups,
                               const PlanOptions& options = {});

// Plans a round in which every rank of a group sends to the next one at the same time, the last to
// the first.
CollectivePlan plan_ring_pass(const Cluster& cluster, std::vector<Group> groups);

// Plans an exchange in which every rank of a group sends an equal part of its buffer to each other
// one, at the rate of the links, as kernels do that were written for it and are not the library's.
CollectivePlan plan_exchange(const Cluster& cluster, std::vector<Group> groups);

// Plans the traffic of single ranks, with one candidate: copies between a GPU and host memory.
enum class Copy : std::uint8_t { h2d, d2h };
CollectivePlan plan_copy(const Cluster& cluster, Copy direction, std::span<const Rank> ranks);
// Plans the traffic of other jobs, with a candidate for each of them in their order.
CollectivePlan plan_neighbours(const Cluster& cluster);

// Files lie on the drives of a rank's node. A process writes or reads at most `rate.most` by
// itself; of its bytes `rate.share` pass the drive, the rest another process has brought to memory.
enum class FileAccess : std::uint8_t { read, write };
struct FileRate {
  BytesPerSecond most{std::numeric_limits<double>::infinity()};
  double share = 1;
};
CollectivePlan plan_file(const Cluster& cluster, FileAccess access, std::span<const Rank> ranks,
                         const FileRate& rate = {});

// DeepSpeed's CPU-Adam updates each rank's share: it takes bytes of host memory traffic, at the
// rate that the node's file gives for a socket with all its cores. Ranks on one socket share it.
struct HostUpdate {
  Seconds adam;  // of 1e9 parameters on one socket with all its cores
  BytesPerSecond most{std::numeric_limits<double>::infinity()};  // by the cores of one rank
};
CollectivePlan plan_cpu_update(const Cluster& cluster, std::span<const Rank> ranks,
                               const HostUpdate& update);

// Returns the number of the cheapest candidate.
std::size_t choose(const CollectivePlan& plan, Bytes bytes);

// The quickest way to send so little that only its latency counts, without flows.
CollectivePlan plan_signal(const Cluster& cluster, Collective kind, std::vector<Group> groups);

Cost cost_of(const Cluster& cluster, const Family& patterns);

// Makes a plan for a cluster that differs from `from` in rates alone, out of the one for that.
// `folded` has of each candidate its patterns, on the links of `platform`, which are as wide as
// those of `to`. Returns false where the plan has to be made anew; both are then of no use.
bool retime(CollectivePlan& plan, std::span<Family> folded, const Platform& platform,
            const Cluster& from, const Cluster& to);

Machinery machinery_of(const Cluster& cluster);

}  // namespace stepsim
