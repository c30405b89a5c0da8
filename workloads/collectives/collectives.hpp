// Collectives are data: a kind, a group and an algorithm become rounds of who sends what to whom.
// They can be printed, their bytes counted and their laws tested without a simulator.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/traffic.hpp"
#include "topology/cluster.hpp"

namespace stepsim {

// Sizes count as nccl-tests count them: all_reduce and broadcast the buffer of one rank, all_gather
// and reduce_scatter the full buffer, all_to_all what one rank sends in total, itself included.
enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_recv
};
std::string_view to_text(Collective kind);
// Bus bandwidth = bytes / time x this, so that it can be held against a link.
double bus_factor(Collective kind, std::size_t ranks);

using Group = std::vector<Rank>;

enum class Medium : std::uint8_t {
  link,       // a steady stream between two ranks
  exchange,   // one of many streams at once: every rank sends to every other
  in_switch,  // between a rank and the reducing switch
};

struct Leg {
  Rank source = 0;
  Rank target = 0;  // in_switch: equal to the source; `towards` says the direction
  double share = 0;
  Medium medium = Medium::link;
  bool towards = true;
};

// These steps follow each other and so add up to the latency.
struct Steps {
  double node = 0, network = 0, in_switch = 0;

  friend bool operator==(const Steps&, const Steps&) = default;
};

struct ScheduleRound {
  Steps steps;
  std::vector<Leg> legs;
  double to_each = 0;  // that every member of the group sends to each other one besides
  Medium medium = Medium::exchange;  // of that
};
using Schedule = std::vector<ScheduleRound>;
// Returns all legs of a round, one by one.
std::vector<Leg> legs_of(const ScheduleRound& round, std::span<const Rank> group);

// A timing is what the times of a pattern are made of.
struct Timing {
  std::vector<Steps> steps;  // [round]
  bool network = false;      // any of them
  std::size_t ranks = 0;     // of the group on one node, at most
  bool known = false;        // or it has to be planned for each cluster
};

enum class Detail : std::uint8_t {
  fluid,    // one flow per pair with all the bytes it carries; the steps are a latency
  stepped,  // every step of the algorithm is a round of its own
  latency,  // as `fluid`, the steps alone: nobody asks for the flows
};

struct Algorithm {
  std::string_view name, summary;
  // Empty when the algorithm does not know the kind or the group does not suit it.
  Schedule (*schedule)(const Cluster&, Collective, std::span<const Rank>, Detail);
};
std::span<const Algorithm> algorithms();
// Throws UserError with the nearest name.
const Algorithm& find_algorithm(std::string_view name);

// A layout is the ranks of a group by node, in group order, and whether all nodes hold equally
// many.
struct Layout {
  std::vector<Group> nodes;
  bool even = true;
  std::size_t rails() const { return even && !nodes.empty() ? nodes.front().size() : 1; }
};
Layout lay_out(const Cluster& cluster, std::span<const Rank> group);

// Returns an exchange with given bytes: matrix[i][j] is what member i sends to member j, as a share
// of the operation's bytes.
Schedule exchange(const Cluster& cluster, std::span<const Rank> group,
                  const std::vector<std::vector<double>>& matrix);

// Returns the traffic of a schedule under one protocol ("ll", "ll128", "simple"). Throws UserError
// when the fabric has no route between two members that have to talk.
Pattern make_pattern(const Cluster& cluster, const Schedule& schedule, std::span<const Rank> group,
                     std::string_view name, std::string_view protocol);
// Returns what all patterns of one schedule for each group have in common; it is not known where
// they differ.
Timing timing_of(const Cluster& cluster, std::span<const Schedule> schedules,
                 std::span<const std::vector<Rank>> groups);
// Gives the pattern, folded or not, the times of a cluster of other rates.
void retime(Pattern& pattern, const Cluster& cluster, const Timing& timing,
            std::string_view protocol);
// Returns whether flows of sorts that differ in what a byte takes on the wire still do.
bool tells_sorts_apart(const Cluster& from, const Cluster& to, std::string_view protocol);
// Returns the pattern of the same schedule under another protocol: flows take the ways that are
// found already.
Pattern in_protocol(Pattern pattern, const Cluster& cluster, const Schedule& schedule,
                    std::string_view name, std::string_view protocol);

}  // namespace stepsim
