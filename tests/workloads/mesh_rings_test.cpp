// Rings between nodes whose GPUs form a mesh.
#include <map>

#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "topology/catalog.hpp"
#include "workloads/collectives/collectives.hpp"

namespace stepsim {

TEST_CASE("inside a mesh no two rings take the same link, and every link carries one",
          "[workloads]") {
  const Cluster cluster =
      load_cluster(source_data(), {.name = "mi300x-8", .nodes = 2, .network = ""});
  Group world(cluster.ranks());
  for (Rank rank = 0; rank < cluster.ranks(); ++rank) world[rank] = rank;
  const double n = static_cast<double>(world.size());
  const Schedule schedule =
      find_algorithm("ring").schedule(cluster, Collective::all_gather, world, Detail::fluid);
  const double rings = cluster.gpus_per_node();
  std::size_t inside = 0;
  for (const Leg& leg : schedule.front().legs) {
    if (place_of(cluster, leg.source).node != place_of(cluster, leg.target).node) continue;
    ++inside;
    CHECK(leg.share == (n - 1) / n / rings);
  }
  CHECK(inside == 2 * cluster.gpus_per_node() * (cluster.gpus_per_node() - 1));
}

TEST_CASE("rings of one mesh take all of its links at once", "[workloads]") {
  const auto legs_of = [](const char* node) {
    const Cluster cluster = load_cluster(source_data(), {.name = node, .nodes = 1, .network = ""});
    Group world(cluster.ranks());
    for (Rank rank = 0; rank < cluster.ranks(); ++rank) world[rank] = rank;
    return find_algorithm("ring")
        .schedule(cluster, Collective::all_reduce, world, Detail::fluid)
        .front()
        .legs;
  };
  const std::vector<Leg> mesh = legs_of("mi300x-8");
  CHECK(mesh.size() == 8 * 7);
  for (const Leg& leg : mesh) CHECK(leg.share == 2 * 7.0 / 8 / 7);
  CHECK(legs_of("h100-8").size() == 8);  // behind a switch one ring fills the port
}

}  // namespace stepsim
