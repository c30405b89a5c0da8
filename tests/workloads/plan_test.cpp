#include "workloads/collectives/plan.hpp"

#include "analysis/studies/predict/bandwidth.hpp"
#include "sim/base/error.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/timed.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

double bus_bandwidth(const Cluster& cluster, const std::vector<Rank>& ranks, double bytes) {
  return numbers_from_worker([&] {
           const BandwidthAnswer answer = measure_bandwidth(
               cluster, {.operation = "all_reduce", .ranks = ranks, .sizes = {bytes}});
           return std::vector{answer.rows.front().bus_bandwidth.value};
         })
      .front();
}

}  // namespace

TEST_CASE("the estimate of a plan is what the replay takes when nothing else runs", "[workloads]") {
  const TinyCluster t{.gpus = 4, .nodes = 2, .port = 5e9};
  const Cluster cluster = tiny_cluster(t);
  const std::string algorithm = GENERATE("ring", "direct", "hierarchical");
  const double bytes = 1e9;
  const CollectivePlan plan = plan_collective(cluster, Collective::all_reduce, {all_ranks(cluster)},
                                              {.algorithm = algorithm});
  const double took = numbers_from_worker([&] {
                        return play(cluster, std::vector{plan}, {bytes}).seconds[0];
                      }).front();
  CAPTURE(algorithm);
  CHECK_THAT(took, WithinRel(plan.candidates[0].cost.at({bytes}).value, 1e-12));
}

TEST_CASE("a message changes its protocol once as it grows", "[workloads]") {
  for (const std::string& name : names_on(source_data(), node_shelf)) {
    const Cluster cluster = load_cluster(source_data(), {.name = name});
    if (cluster.ranks() < 2) continue;
    for (std::size_t i = 0; i < collective_kinds.size(); ++i) {
      const auto kind = static_cast<Collective>(i);
      const std::string algorithm = algorithms_for(cluster.node.collectives, to_text(kind)).front();
      const CollectivePlan plan =
          plan_collective(cluster, kind, {all_ranks(cluster)}, {.algorithm = algorithm});
      std::string protocol = plan.candidates[choose(plan, {8})].protocol;
      CAPTURE(name, to_text(kind), algorithm);
      CHECK(protocol == "ll");
      int changes = 0;
      for (double bytes = 8; bytes <= 0x1p34; bytes *= 2)
        if (const std::string& now = plan.candidates[choose(plan, {bytes})].protocol;
            now != protocol) {
          ++changes;
          protocol = now;
        }
      CHECK(changes == 1);
      CHECK(protocol == "simple");
    }
  }
}

TEST_CASE("two MI300X reach one link and eight reach seven, from one file", "[workloads]") {
  const Cluster cluster = load_cluster(source_data(), {.name = "mi300x-8"});
  const double two = bus_bandwidth(cluster, {0, 1}, 0x1p32),
               eight = bus_bandwidth(cluster, all_ranks(cluster), 0x1p32);
  CHECK((two > 45e9 && two < 50e9));
  CHECK((eight > 300e9 && eight < 325e9));
}

TEST_CASE("a group that repeats or invents a rank is the user's mistake", "[workloads]") {
  const Cluster cluster = tiny_cluster({});
  const auto plan = [&](std::vector<Group> groups) {
    return plan_collective(cluster, Collective::all_gather, std::move(groups));
  };
  CHECK_THROWS_WITH(plan({{0, 1, 1}}), Contains("rank 1 is listed twice"));
  CHECK_THROWS_WITH(plan({{0, 4}}), Contains("no rank 4") && Contains("ranks 0 to 3"));
  CHECK_THROWS_AS(plan({{}}), UserError);
  CHECK_THROWS_AS(plan({}), UserError);
  CHECK_THROWS_WITH(find_algorithm("rnig"), Contains("did you mean \"ring\"?"));
  CHECK_THROWS_WITH(
      plan_collective(cluster, Collective::all_gather, {{0, 1}}, {.algorithm = "nvls"}),
      Contains("nvls cannot do all_gather"));
}

}  // namespace stepsim
