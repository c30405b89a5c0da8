// Folding under a program: compute, collectives and copies that overlap and slow each other.
#include <map>

#include "sim/base/lists.hpp"
#include "sim/engine/own/replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/machines.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/tiny_pipeline.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"
#include "workloads/program/program_builder.hpp"

namespace stepsim {
namespace {

constexpr std::int16_t steps = 4;

// Groups of the ranks that `key` puts together.
std::vector<Group> grouped(const Cluster& cluster, const std::function<std::uint32_t(Rank)>& key) {
  std::map<std::uint32_t, Group> groups;
  for (const Rank rank : all_ranks(cluster)) groups[key(rank)].push_back(rank);
  std::vector<Group> result;
  for (const auto& [number, group] : groups) result.push_back(group);
  return result;
}

enum Plan : std::size_t { gather, exchange_inside, reduce_inside, load_in, save_out };

Traffic traffic_of(const Cluster& cluster, const Machinery& machinery, Folding folding) {
  const std::vector<Group> world{all_ranks(cluster)};
  const std::vector<Group> nodes =
      grouped(cluster, [&](Rank rank) { return place_of(cluster, rank).node; });
  return make_traffic(
      machinery,
      {plan_collective(cluster, Collective::all_gather, world),
       plan_collective(cluster, Collective::all_to_all, nodes),
       plan_collective(cluster, Collective::reduce_scatter, world),
       plan_copy(cluster, Copy::h2d, world.front()), plan_copy(cluster, Copy::d2h, world.front())},
      folding);
}

// A few layers: parameters are gathered ahead, compute runs under it, tokens are exchanged inside
// the nodes, gradients reduced, and copies come and go.
OpGraph program(const Traffic& traffic) {
  ProgramBuilder builder(traffic);
  std::int16_t number = 0;  // every call gets its own, as layer
  const auto op = [&](OpKind kind, Stream stream, double seconds, double bytes) {
    return Op{
        .kind = kind, .stream = stream, .layer = number++, .seconds = {seconds}, .bytes = {bytes}};
  };
  for (std::int16_t step = 0; step < steps; ++step) {
    builder.everywhere(op(OpKind::host, Stream::host, 20e-6, 0));
    builder.collective(gather, op(OpKind::collective, Stream::gather, 0, 1e8), Stream::host);
    builder.collective(load_in, op(OpKind::transfer, Stream::h2d, 0, 5e7), Stream::host);
    builder.everywhere(op(OpKind::compute, Stream::compute, 3e-3, 0));
    builder.wait(Stream::compute, Stream::gather);
    builder.collective(exchange_inside, op(OpKind::collective, Stream::all_to_all, 0, 4e7),
                       Stream::compute);
    builder.everywhere(op(OpKind::compute, Stream::compute, 1e-3, 0));
    builder.wait(Stream::compute, Stream::all_to_all);
    builder.everywhere(op(OpKind::compute, Stream::compute, 2e-3, 0));
    builder.collective(reduce_inside, op(OpKind::collective, Stream::reduce, 0, 1e8),
                       Stream::compute);
    builder.collective(save_out, op(OpKind::transfer, Stream::d2h, 0, 3e7), Stream::compute);
  }
  return builder.take();
}

// For every call of the builder and every rank, when the rank was done with it.
std::vector<double> played(const Cluster& cluster, const Machinery& machinery, Folding folding) {
  return numbers_from_worker([&] {
    const Traffic traffic = traffic_of(cluster, machinery, folding);
    const OpGraph graph = program(traffic);
    const Trace trace = replay(traffic.folded.platform, graph);
    std::vector<std::vector<double>> done;  // [call][lane]
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const Op& op = graph.ops()[i];
      if (op.layer < 0) continue;
      const auto call = static_cast<std::size_t>(op.layer);
      if (call >= done.size()) done.resize(call + 1, std::vector<double>(traffic.lanes(), -1));
      if (op.pattern == no_pattern)
        done[call][op.rank] = trace.finish[i];
      else
        for (const Rank lane : graph.patterns()[index(op.pattern)].members)
          done[call][lane] = trace.finish[i];
    }
    std::vector<double> by_rank;
    for (const auto& lanes : done)
      for (const Rank lane : traffic.folded.lane_of) by_rank.push_back(lanes[lane]);
    return by_rank;
  });
}

void check_same(const Cluster& cluster, const Machinery& machinery) {
  const std::vector<double> whole = played(cluster, machinery, Folding::off);
  const std::vector<double> folded = played(cluster, machinery, Folding::automatic);
  REQUIRE(whole.size() == 10 * steps * cluster.ranks() - steps * cluster.ranks());
  REQUIRE(folded.size() == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(i / cluster.ranks(), i % cluster.ranks());
    REQUIRE_THAT(folded[i], WithinRel(whole[i], 1e-9));
  }
}

std::vector<Cluster> machines() {
  std::vector<Cluster> clusters = leafy_clusters();
  for (const MachineSize& size : node_machines({1, 2, 3, to_the_brim}, 32))
    clusters.push_back(load(size));
  std::erase_if(clusters, [](const Cluster& cluster) { return cluster.gpus_per_node() < 2; });
  return clusters;
}

}  // namespace

TEST_CASE("folding leaves every moment of a program as it is", "[laws][slow]") {
  for (const Cluster& cluster : machines()) {
    CAPTURE(cluster.node.name, cluster.nodes);
    check_same(cluster, machinery_of(cluster));
  }
}

TEST_CASE("a straggler is folded with nobody and seen by all who wait for it", "[laws][slow]") {
  for (const Cluster& cluster : machines()) {
    const Rank slow = cluster.ranks() / 3;
    Machinery machinery = machinery_of(cluster);
    machinery.kinds.assign(cluster.ranks(), 0);
    machinery.kinds[slow] = 1;
    machinery.device = [&](Rank rank) {
      Device device = device_of(cluster, rank);
      if (rank == slow) device.speed = 0.7;
      return device;
    };
    CAPTURE(cluster.node.name, cluster.nodes, slow);
    const Folded folded = traffic_of(cluster, machinery, Folding::automatic).folded;
    CHECK(folded.lane_sizes[folded.lane_of[slow]] == 1);
    check_same(cluster, machinery);
  }
}

TEST_CASE("steps with a slow GPU take as long as with every GPU replayed", "[laws]") {
  std::vector<Variant> variants = tiny_variants(2, 4);
  append(variants, tiny_pipelines());
  for (Variant& variant : variants) {
    CAPTURE(variant.name);
    TinyStep& step = variant.step;
    step.cluster.speeds.assign(step.cluster.ranks(), 1);
    step.cluster.speeds[step.cluster.ranks() / 3] = 0.7;
    CHECK_THAT(seconds_of(step), WithinRel(seconds_of(step, Folding::off), 1e-9));
  }
}

TEST_CASE("one slow GPU makes no more ranks unlike the more nodes there are", "[laws]") {
  const auto lanes = [](std::uint32_t nodes) {
    TinyStep step = tiny_step(Sharding::zero3, tiny_model(), nodes, 8);
    step.cluster.speeds.assign(step.cluster.ranks(), 1);
    step.cluster.speeds[11] = 0.7;
    return build_step(step.input(), Folding::automatic).traffic.lanes();
  };
  // However far the others are from it around a ring.
  CHECK(lanes(64) == lanes(4));
}

TEST_CASE("ranks of different kind are never folded together", "[laws]") {
  const Cluster cluster = tiny_cluster({.fabric = Fabric::mesh, .gpus = 8});
  Machinery machinery = machinery_of(cluster);
  CHECK(traffic_of(cluster, machinery, Folding::automatic).lanes() == 1);
  for (Rank rank = 0; rank < 8; ++rank) machinery.kinds.push_back(rank / 4);
  const Folded folded = traffic_of(cluster, machinery, Folding::automatic).folded;
  CHECK(folded.rank_of == std::vector<Rank>{0, 4});
  CHECK(folded.lane_sizes == std::vector<std::uint32_t>{4, 4});
  check_same(cluster, machinery);
}

}  // namespace stepsim
