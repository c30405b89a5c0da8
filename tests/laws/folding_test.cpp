// Folding simulates one of many equal ranks. That must never change a time.
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/symmetry.hpp"
#include "sim/twins.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/machines.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/timed.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

constexpr double bytes = 3e8;
constexpr std::uint32_t most_ranks = 64;

std::optional<CollectivePlan> plan_if(const Cluster& cluster, Collective kind,
                                      std::string_view algorithm, std::vector<Group> groups) {
  try {
    return plan_collective(cluster, kind, std::move(groups),
                           {.algorithm = std::string(algorithm), .protocol = "simple"});
  } catch (const UserError&) {
    return std::nullopt;  // does not suit the group, or no cable leads there
  }
}

std::vector<CollectivePlan> all_plans(const Cluster& cluster) {
  std::vector<CollectivePlan> plans;
  for (std::size_t kind = 0; kind < collective_kinds.size(); ++kind)
    for (const Algorithm& algorithm : algorithms())
      if (auto plan =
              plan_if(cluster, static_cast<Collective>(kind), algorithm.name, {all_ranks(cluster)}))
        plans.push_back(std::move(*plan));
  return plans;
}

// Seconds per plan and group, all plans one after the other.
std::vector<double> seconds(const Cluster& cluster, const std::vector<CollectivePlan>& plans,
                            Folding folding) {
  return numbers_from_worker([&] {
    std::vector<double> all;
    for (const auto& groups : play(cluster, plans, {bytes}, folding).seconds)
      all.insert(all.end(), groups.begin(), groups.end());
    return all;
  });
}

void check_same(const std::vector<double>& folded, const std::vector<double>& whole) {
  REQUIRE(folded.size() == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK_THAT(folded[i], WithinRel(whole[i], 1e-9));
}

// Each collective folded by itself, and all of them folded together, against the whole.
void check_folding(const Cluster& cluster, const std::vector<CollectivePlan>& plans) {
  const std::vector<double> whole = seconds(cluster, plans, Folding::off);
  {
    INFO("all together");
    check_same(seconds(cluster, plans, Folding::automatic), whole);
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    CAPTURE(plans[i].candidates[0].patterns[0].name);
    check_same(seconds(cluster, {plans[i]}, Folding::automatic), {whole[i]});
  }
}

void check_folding(const Cluster& cluster) {
  if (cluster.ranks() < 2) return;
  const std::vector<CollectivePlan> plans = all_plans(cluster);
  REQUIRE(plans.size() >= 3);
  check_folding(cluster, plans);
}

// Every third of them, beginning with another one on each machine.
std::vector<CollectivePlan> a_third(const std::vector<CollectivePlan>& plans, std::size_t machine) {
  std::vector<CollectivePlan> some;
  for (std::size_t i = machine % 3; i < plans.size(); i += 3) some.push_back(plans[i]);
  return some;
}

void check_thirds(const std::vector<std::uint32_t>& counts) {
  std::size_t machine = 0;
  for (const MachineSize& size : node_machines(counts, most_ranks)) {
    CAPTURE(size.name, size.nodes);
    const Cluster cluster = load(size);
    if (cluster.ranks() > 1) check_folding(cluster, a_third(all_plans(cluster), machine++));
  }
}

}  // namespace

TEST_CASE("folding leaves the time of every collective on a few nodes as it is", "[laws][slow]") {
  check_thirds({1, 2, 3, 4});
}

TEST_CASE("folding leaves the time of every collective on 64 ranks as it is", "[laws][slow]") {
  check_thirds({to_the_brim});
}

// The other clusters are their node on its usual network, which those above have seen.
TEST_CASE("folding leaves the time of every collective on every cluster as it is", "[laws]") {
  for (const MachineSize& size : cluster_machines({2, 3, 4, to_the_brim}, most_ranks)) {
    CAPTURE(size.name, size.nodes);
    check_folding(load(size));
  }
}

TEST_CASE("folding sees where a leaf ends", "[laws]") {
  for (const Cluster& cluster : leafy_clusters()) {
    CAPTURE(cluster.nodes, cluster.node.count(PartKind::nvswitch),
            cluster.node.count(PartKind::nic));
    check_folding(cluster);
  }
}

TEST_CASE("an exchange is folded as its flows one by one are", "[laws]") {
  for (const Cluster& cluster : leafy_clusters()) {
    CAPTURE(cluster.nodes, cluster.node.count(PartKind::nic));
    const auto plan = plan_if(cluster, Collective::all_to_all, "direct", {all_ranks(cluster)});
    const Family whole = plan->candidates[0].patterns, spelt = mapped(whole, spelt_out);
    REQUIRE(spelt[0].rounds[0].flows.size() == cluster.ranks() * (cluster.ranks() - 1));
    CHECK(whole[0].rounds[0].flows.size() < spelt[0].rounds[0].flows.size());
    const auto folded = [&](const Family& family) {
      return fold(machinery_of(cluster), std::vector<Family>{family}, Folding::automatic);
    };
    const Folded one = folded(whole), other = folded(spelt);
    CHECK(one.lane_sizes == other.lane_sizes);
    CHECK(one.platform.links.size() == other.platform.links.size());
    CHECK(one.families[0][0].rounds[0].flows.size() == other.families[0][0].rounds[0].flows.size());
    const Cost costs = cost_of(cluster, whole), added = cost_of(cluster, spelt);
    CHECK_THAT(costs.per_byte, WithinRel(added.per_byte, 1e-12));
    CHECK(costs.busiest == added.busiest);
  }
}

TEST_CASE("folding leaves the time of random groups as it is", "[laws]") {
  Dice dice(2024);
  std::vector<Cluster> clusters = leafy_clusters();
  for (const MachineSize& size : node_machines({1, 2, to_the_brim}, 16))
    clusters.push_back(load(size));
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    const Cluster& cluster = clusters[dice.roll(static_cast<std::uint32_t>(clusters.size()))];
    if (cluster.ranks() < 4) continue;
    std::vector<Rank> ranks = all_ranks(cluster);
    if (dice.roll(2) == 0) dice.shuffle(ranks);  // else neighbours stay together
    const std::uint32_t size = 2 + dice.roll(cluster.ranks() / 2 - 1);
    const std::uint32_t most = cluster.ranks() / size;
    std::vector<Group> groups;
    for (std::uint32_t g = 0; g < 1 + dice.roll(most); ++g)
      groups.emplace_back(ranks.begin() + g * size, ranks.begin() + (g + 1) * size);
    const auto kind = static_cast<Collective>(dice.roll(6));
    const Algorithm& algorithm = algorithms()[dice.roll(4)];
    const auto plan = plan_if(cluster, kind, algorithm.name, groups);
    if (!plan) continue;
    ++compared;
    CAPTURE(cluster.name, cluster.node.name, cluster.nodes, to_text(kind), algorithm.name, groups);
    check_same(seconds(cluster, {*plan}, Folding::automatic),
               seconds(cluster, {*plan}, Folding::off));
  }
  CHECK(compared > 100);
}

TEST_CASE("what is alike is simulated once", "[laws]") {
  const auto folded = [](const Cluster& cluster, const CollectivePlan& plan) {
    return fold(machinery_of(cluster), std::vector<Family>{plan.candidates[0].patterns},
                Folding::automatic);
  };
  const auto lanes = [&](const Cluster& cluster, const CollectivePlan& plan) {
    return folded(cluster, plan).rank_of.size();
  };
  const auto links = [&](const Cluster& cluster, const CollectivePlan& plan) {
    return folded(cluster, plan).platform.links.size();
  };
  const auto plan = [](const Cluster& cluster, std::string_view algorithm) {
    return *plan_if(cluster, Collective::all_reduce, algorithm, {all_ranks(cluster)});
  };
  const Cluster mesh = tiny_cluster({.fabric = Fabric::mesh, .gpus = 8});
  CHECK(lanes(mesh, plan(mesh, "direct")) == 1);
  const Cluster far = tiny_cluster({.gpus = 8, .nodes = 8});
  CHECK(lanes(far, plan(far, "hierarchical")) == 1);
  CHECK(lanes(far, plan(far, "direct")) == 1);
  // Three nodes under two leaves: one of them has a leaf to itself, which shows when trunks are
  // thin. Ranks that wait for each other are alike even so.
  const Cluster thin = tiny_cluster({.gpus = 2, .nodes = 3, .leaf_nodes = 2, .uplink = 7e9});
  CHECK(lanes(thin, plan(thin, "hierarchical")) == 1);
  const Cluster wide = tiny_cluster({.gpus = 2, .nodes = 3, .leaf_nodes = 2, .uplink = 1e15});
  CHECK(lanes(wide, plan(wide, "hierarchical")) == 1);
  CHECK(links(thin, plan(thin, "hierarchical")) > links(wide, plan(wide, "hierarchical")));
  CHECK(fold(machinery_of(far), std::vector<Family>{plan(far, "direct").candidates[0].patterns},
             Folding::off)
            .rank_of.size() == far.ranks());
}

TEST_CASE("families that do the same with other numbers are twins, and folded as if alone",
          "[laws]") {
  const Cluster cluster = load_cluster(source_data(), {.name = "superpod-h100", .nodes = 4});
  std::vector<Family> families;
  for (const Collective kind : {Collective::all_gather, Collective::reduce_scatter})
    for (const Candidate& each :
         plan_collective(cluster, kind, {all_ranks(cluster)}, {.algorithm = "ring"}).candidates)
      families.push_back(each.patterns);
  REQUIRE(families.size() >= 4);
  const Twins twins = find_twins(families);
  for (std::uint32_t i = 0, half = static_cast<std::uint32_t>(families.size() / 2); i < half; ++i)
    CHECK(twins[i + half] == twins[i]);  // the reduction sends what the gather does
  const Machinery machinery = machinery_of(cluster);
  const Folded together = fold(machinery, families, Folding::automatic);
  for (std::size_t i = 0; i < families.size(); ++i) {
    CAPTURE(families[i].front().name);
    const Folded alone = fold(machinery, std::span(&families[i], 1), Folding::automatic);
    CHECK(together.families[i] == alone.families.front());
    CHECK(together.group_class[i] == alone.group_class.front());
    CHECK(together.platform.links == alone.platform.links);
  }
  SECTION("not if one flow has another amount, or another limit, or goes another way") {
    std::vector<Flow>& flows = families.back().front().rounds.front().flows;
    const int change = GENERATE(0, 1, 2);
    if (change == 0) flows.front().wire *= 2;
    if (change == 1) flows.front().rate_cap = 1e9;
    if (change == 2) std::swap(flows.front().path, flows.back().path);
    CHECK_FALSE(is_twin(find_twins(families), static_cast<std::uint32_t>(families.size()) - 1));
  }
}

TEST_CASE("a pattern in another protocol is the one that is made in it", "[laws]") {
  const Cluster cluster = load_cluster(source_data(), {.name = "superpod-h100", .nodes = 3});
  REQUIRE(cluster.node.collectives.protocols.size() > 1);
  const Group group = all_ranks(cluster);
  for (const Algorithm& algorithm : algorithms())
    for (const Collective kind :
         {Collective::all_gather, Collective::all_reduce, Collective::all_to_all}) {
      const Schedule schedule = algorithm.schedule(cluster, kind, group, Detail::fluid);
      if (schedule.empty()) continue;
      CAPTURE(algorithm.name, to_text(kind));
      const Schedule steps = algorithm.schedule(cluster, kind, group, Detail::latency);
      REQUIRE(steps.size() == schedule.size());
      for (std::size_t i = 0; i < steps.size(); ++i) {
        CHECK(steps[i].steps.node == schedule[i].steps.node);
        CHECK(steps[i].steps.network == schedule[i].steps.network);
        CHECK(steps[i].steps.in_switch == schedule[i].steps.in_switch);
      }
      for (const Protocol& protocol : cluster.node.collectives.protocols)
        CHECK(in_protocol(make_pattern(cluster, schedule, group, "simple", "simple"), cluster,
                          schedule, protocol.name, protocol.name) ==
              make_pattern(cluster, schedule, group, protocol.name, protocol.name));
    }
}

}  // namespace stepsim
