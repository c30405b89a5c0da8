#include "workloads/collectives/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/exactly.hpp"
#include "tests/support/timed.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/worker.hpp"

namespace stepsim {
namespace {

constexpr std::array kinds{Collective::all_reduce,     Collective::all_gather,
                           Collective::reduce_scatter, Collective::all_to_all,
                           Collective::broadcast,      Collective::send_recv};

// Half a buffer each way for every edge of the busiest place of two trees; all nodes send as much.
double sent_by_trees(double nodes) {
  return nodes * std::min(nodes, 4.0) / 2;
}

// What all ranks together send, in buffers.
double textbook_total(Collective kind, std::string_view algorithm, double nodes, double per_node) {
  const double n = nodes * per_node;
  switch (kind) {
    case Collective::all_reduce:
      // In-switch: all slices up and one sum down, then one slice up and all down, for each rank.
      if (algorithm == "nvls") return 2 * (n + 1);
      if (algorithm == "nvls_tree") return nodes * 2 * (per_node + 1) + sent_by_trees(nodes);
      if (algorithm == "tree" && nodes > 1 && per_node == std::floor(per_node))
        return nodes * 2 * (per_node - 1) + sent_by_trees(nodes);
      return 2 * (n - 1);
    case Collective::all_to_all:  // two hops when it goes inside the nodes first
      if (algorithm == "hierarchical") return nodes * (per_node - 1) + per_node * (nodes - 1);
      return n - 1;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::broadcast:
      return n - 1;
    case Collective::send_recv:
      return algorithm == "ring" ? n : 1;  // everybody to his neighbour, or one to another
  }
  return 0;
}

double total(const Schedule& schedule, const std::vector<Rank>& group) {
  double sum = 0;
  for (const ScheduleRound& round : schedule)
    for (const Leg& leg : legs_of(round, group)) sum += leg.share;
  return sum;
}

std::map<Rank, double> received(const Schedule& schedule, const std::vector<Rank>& group) {
  std::map<Rank, double> sums;
  for (const ScheduleRound& round : schedule)
    for (const Leg& leg : legs_of(round, group)) sums[leg.target] += leg.share;
  return sums;
}

// Checks one shape with all kinds and algorithms and says how many there were.
int check_bytes(const Cluster& cluster, const std::vector<Rank>& group, Detail detail) {
  const Layout layout = lay_out(cluster, group);
  const double nodes = static_cast<double>(layout.nodes.size());
  const double n = static_cast<double>(group.size());
  int known = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const Collective kind : kinds) {
      const Schedule schedule = algorithm.schedule(cluster, kind, group, detail);
      if (schedule.empty()) continue;
      if (detail == Detail::stepped && algorithm.name == "tree") continue;  // unpipelined
      ++known;
      CAPTURE(algorithm.name, to_text(kind), group.size(), nodes);
      CHECK_THAT(total(schedule, group),
                 WithinRel(textbook_total(kind, algorithm.name, nodes, n / nodes), 1e-12));
      if (kind == Collective::all_gather)
        for (const Rank rank : group)
          CHECK_THAT(received(schedule, group)[rank], WithinRel((n - 1) / n, 1e-12));
    }
  }
  return known;
}

std::vector<Rank> first_ranks(std::uint32_t n) {
  std::vector<Rank> ranks(n);
  for (Rank rank = 0; rank < n; ++rank) ranks[rank] = rank;
  return ranks;
}

}  // namespace

TEST_CASE("every algorithm moves the bytes of the textbook inside a node", "[workloads]") {
  const auto detail = GENERATE(Detail::fluid, Detail::stepped);
  const auto n = GENERATE(2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u);
  CHECK(check_bytes(tiny_cluster({.gpus = 9}), first_ranks(n), detail) > 10);
}

TEST_CASE("every algorithm moves the bytes of the textbook across nodes", "[workloads]") {
  const auto detail = GENERATE(Detail::fluid, Detail::stepped);
  const auto gpus = GENERATE(1u, 2u, 3u, 4u, 8u);
  const auto nodes = GENERATE(2u, 3u, 4u, 5u);
  const Cluster cluster = tiny_cluster({.gpus = gpus, .nodes = nodes});
  CHECK(check_bytes(cluster, all_ranks(cluster), detail) > 10);
}

TEST_CASE("unevenly spread groups move the bytes of the textbook", "[workloads]") {
  const Cluster cluster = tiny_cluster({.gpus = 4, .nodes = 3});
  for (const std::vector<Rank>& group :
       {std::vector<Rank>{0, 4, 5}, {3, 1, 8, 9, 10}, {0, 1, 2, 3, 11}})
    for (const Algorithm& algorithm : algorithms())
      for (const Collective kind : kinds) {
        const Schedule schedule = algorithm.schedule(cluster, kind, group, Detail::fluid);
        if (schedule.empty()) continue;
        CAPTURE(algorithm.name, to_text(kind), group);
        const double n = static_cast<double>(group.size());
        CHECK_THAT(total(schedule, group),
                   WithinRel(textbook_total(kind, algorithm.name, 1, n), 1e-12));
      }
}

TEST_CASE("links carry exactly the payload of the schedules that use them", "[workloads]") {
  const double bytes = 1e8;
  const Cluster cluster = tiny_cluster({.gpus = 4, .nodes = 3, .leaf_nodes = 2});
  const std::vector<Rank> group = all_ranks(cluster);
  std::vector<CollectivePlan> plans;
  std::map<std::string, double> expected;
  for (const Algorithm& algorithm : algorithms())
    for (const Collective kind : kinds) {
      const Schedule schedule = algorithm.schedule(cluster, kind, group, Detail::fluid);
      if (schedule.empty()) continue;
      plans.push_back(plan_of(cluster, {.kind = kind, .algorithm = std::string(algorithm.name)}));
      for (const ScheduleRound& round : schedule)
        for (const Leg& leg : legs_of(round, group)) {
          const Path path = leg.medium != Medium::in_switch
                                ? collective_route(cluster, leg.source, leg.target)
                            : leg.towards ? to_switch(cluster, leg.source)
                                          : from_switch(cluster, leg.source);
          for (const LinkId link : path) expected[link_of(cluster, link).name] += leg.share * bytes;
        }
    }
  const Run run = play(cluster, plans, {bytes}, Folding::off).run;
  REQUIRE(run.platform.links.size() == expected.size());
  for (std::size_t i = 0; i < run.platform.links.size(); ++i) {
    CAPTURE(run.platform.links[i].name);
    CHECK_THAT(run.trace.links[i].bytes, WithinRel(expected[run.platform.links[i].name], 1e-12));
    CHECK(run.trace.links[i].bytes <=
          run.platform.links[i].capacity.value * run.trace.links[i].busy.value * (1 + 1e-9));
  }
}

TEST_CASE("rings across nodes load every port alike", "[workloads]") {
  const auto nodes = GENERATE(2u, 3u, 4u);
  const double bytes = 1e9;
  const Cluster cluster = tiny_cluster({.gpus = 8, .nodes = nodes});
  const double n = 8.0 * nodes;
  const std::vector<double> ports = numbers_from_worker([&] {
    const Run run =
        play(cluster, {.kind = Collective::all_gather, .algorithm = "ring"}, {bytes}, Folding::off)
            .run;
    std::vector<double> carried;
    for (std::size_t i = 0; i < run.platform.links.size(); ++i)
      if (run.platform.links[i].name.find(".port") != std::string::npos)
        carried.push_back(run.trace.links[i].bytes);
    return carried;
  });
  CHECK(ports.size() == 2 * 8 * nodes);  // both directions
  for (const double port : ports) CHECK_THAT(port, exactly(bytes * (n - 1) / n / 8));
}

TEST_CASE("a rank alone pays the launch and nothing else", "[workloads]") {
  const TinyCluster t{};
  const Cluster cluster = tiny_cluster(t);
  const CollectivePlan plan = plan_collective(cluster, Collective::all_reduce, {{2}});
  CHECK(plan.candidates.size() == 1);
  CHECK_THAT(play(cluster, std::vector{plan}, {1e9}).seconds[0][0], exactly(t.launch));
}

TEST_CASE("a subgroup of a switch takes the time of its size wherever it sits", "[workloads]") {
  const TinyCluster t{.gpus = 8};
  const Cluster cluster = tiny_cluster(t);
  const double bytes = 1e9, n = 3;
  const auto ranks = GENERATE(std::vector<Rank>{0, 1, 2}, std::vector<Rank>{7, 3, 5});
  CHECK_THAT(numbers_from_worker([&] {
               return play(cluster, {.kind = Collective::all_gather, .ranks = ranks}, {bytes})
                   .seconds.front();
             }).front(),
             exactly(t.launch + (n - 1) * (t.step + bytes / n / (t.efficiency * t.link))));
}

TEST_CASE("bridged pairs are fast among themselves and meet others over PCIe", "[workloads]") {
  const TinyCluster t{.fabric = Fabric::pairs, .pcie = 10e9};
  const Cluster cluster = tiny_cluster(t);
  const double bytes = 1e9;
  const auto [ranks, rate] = GENERATE_REF(table<std::vector<Rank>, double>(
      {{{0, 1}, t.link}, {{2, 3}, t.link}, {{1, 2}, t.pcie}, {{0, 3}, t.pcie}}));
  const Question question{.kind = Collective::all_gather, .algorithm = "ring", .ranks = ranks};
  CHECK_THAT(
      numbers_from_worker([&] { return play(cluster, question, {bytes}).seconds.front(); }).front(),
      exactly(t.launch + t.step + bytes / 2 / (t.efficiency * rate)));
}

}  // namespace stepsim
