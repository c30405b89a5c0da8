// Who gets in whose way, worked out by hand.
#include <algorithm>
#include <map>
#include <numeric>

#include "sim/engine/own/replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/timed.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/worker.hpp"
#include "topology/catalog.hpp"
#include "workloads/program/program_builder.hpp"

namespace stepsim {
namespace {

Cluster catalogued(const std::string& name, std::uint32_t nodes = 1) {
  return load_cluster(source_data(), {.name = name, .nodes = nodes});
}

const Candidate& only(const CollectivePlan& plan) {
  return plan.candidates.front();
}

Op collective_op(double bytes, Stream stream) {
  return {.kind = OpKind::collective, .stream = stream, .bytes = {bytes}};
}

// The groups at the same time: the longest of them.
double together(const Cluster& cluster, const CollectivePlan& plan, double bytes) {
  const std::vector<double> all = numbers_from_worker(
      [&] { return play(cluster, std::vector{plan}, {bytes}).seconds.front(); });
  return *std::max_element(all.begin(), all.end());
}

CollectivePlan pairs_plan(const Cluster& cluster, std::vector<Group> groups) {
  return plan_collective(cluster, Collective::send_recv, std::move(groups),
                         {.algorithm = "direct", .protocol = "simple"});
}

}  // namespace

TEST_CASE("an all_gather and an all_to_all on one switch share every port", "[workloads]") {
  // Four ranks: a ring puts one flow on each port, the exchange three. Each of the four gets a
  // quarter of the port until the exchange is done; the ring then has the port to itself. The port
  // is never idle, so the ring ends when all bytes of both have passed.
  const TinyCluster t{.gpus = 4, .efficiency = 1, .exchange = 1};
  const Cluster cluster = tiny_cluster(t);
  const double S = 4e9, part = S / 4;
  const std::vector<Group> world{all_ranks(cluster)};
  const Traffic traffic = make_traffic(
      machinery_of(cluster),
      {plan_collective(cluster, Collective::all_gather, world, {.algorithm = "ring"}),
       plan_collective(cluster, Collective::all_to_all, world, {.algorithm = "direct"})},
      Folding::off);
  ProgramBuilder builder(traffic);
  builder.collective(0, collective_op(S, Stream::gather), Stream::gather);
  builder.collective(1, collective_op(S, Stream::all_to_all), Stream::all_to_all);
  const Trace trace = replay(traffic.folded.platform, builder.take());
  const double begin = t.launch + 3 * t.step;  // of both: three steps, three peers
  CHECK_THAT(trace.finish[1], exactly(begin + part / (t.link / 4)));
  CHECK_THAT(trace.finish[0], exactly(begin + (3 * part + 3 * part) / t.link));
}

TEST_CASE("two copies under one PCIe uplink share it and under two do not", "[workloads]") {
  const Cluster cluster = catalogued("a100-8");
  const double bytes = 1e9, start = cluster.node.host.copy_start.value.value;
  const auto rate = [&](std::string_view name) {
    for (const LinkSpec& link : cluster.node.links)
      if (link.name == name) return link.bandwidth.value.value;
    return 0.0;
  };
  // GPUs 0 and 1 sit below PCIe switch 0, GPU 2 below switch 1, all below socket 0.
  REQUIRE(rate("pcie") >= rate("uplink"));
  REQUIRE(rate("dram") >= 2 * rate("uplink"));
  const auto seconds = [&](std::vector<Rank> ranks) {
    return together(cluster, plan_copy(cluster, Copy::h2d, ranks), bytes) - start;
  };
  const double alone = bytes / rate("uplink");
  CHECK_THAT(seconds({0}), WithinRel(alone, 1e-9));
  CHECK_THAT(seconds({0, 1}), WithinRel(2 * alone, 1e-9));
  CHECK_THAT(seconds({0, 2}), WithinRel(alone, 1e-9));
}

TEST_CASE("a straggler delays its own group alone", "[workloads]") {
  const double work = 1e-3, bytes = 1e8, slowness = 2;
  const TinyCluster t{.fabric = Fabric::mesh, .gpus = 4};
  const Cluster cluster = tiny_cluster(t);
  Machinery machinery = machinery_of(cluster);
  machinery.kinds = {0, 1, 0, 0};
  machinery.device = [&](Rank rank) {
    Device device = device_of(cluster, rank);
    if (rank == 1) device.speed = 1 / slowness;
    return device;
  };
  const Traffic traffic = make_traffic(
      machinery,
      {plan_collective(cluster, Collective::all_reduce, {{0, 1}, {2, 3}}, {.algorithm = "direct"})},
      Folding::automatic);
  ProgramBuilder builder(traffic);
  builder.everywhere({.kind = OpKind::compute, .stream = Stream::compute, .seconds = {work}});
  builder.collective(0, collective_op(bytes, Stream::reduce), Stream::compute);
  const OpGraph graph = builder.take();
  const Trace trace = replay(traffic.folded.platform, graph);
  const double moved = t.launch + 2 * (t.step + bytes / 2 / (t.efficiency * t.link));
  const std::vector<Rank>& lane = traffic.folded.lane_of;
  CHECK(lane[0] != lane[2]);  // who waits for a straggler is told from who does not
  CHECK(lane[2] == lane[3]);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.kind != OpKind::collective) continue;
    const bool waits = op.rank == lane[0] || op.rank == lane[1];
    CHECK_THAT(trace.finish[i], exactly((waits ? slowness : 1) * work + moved));
  }
}

TEST_CASE("four NICs carry four times what one carries", "[workloads]") {
  const Cluster cluster = catalogued("gh200-4", 2);
  REQUIRE(cluster.gpus_per_node() == 4);
  const double bytes = 1e9;
  const double one = together(cluster, pairs_plan(cluster, {{0, 4}}), bytes);
  const double four =
      together(cluster, pairs_plan(cluster, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}), bytes);
  CHECK_THAT(four, WithinRel(one, 1e-9));  // four times the bytes in the same time
}

TEST_CASE("ranks that share a NIC share its rate", "[workloads]") {
  const TinyCluster t{.gpus = 4, .nodes = 2, .nics = 2, .port = 5e9};
  const Cluster cluster = tiny_cluster(t);
  const double bytes = 1e9;
  const double fixed = t.launch + t.network_launch + t.network_step;
  const double alone = bytes / (t.network_efficiency * t.port);
  CHECK_THAT(together(cluster, pairs_plan(cluster, {{0, 4}, {1, 5}}), bytes),
             exactly(fixed + 2 * alone));
  CHECK_THAT(together(cluster, pairs_plan(cluster, {{0, 4}, {2, 6}}), bytes),
             exactly(fixed + alone));
}

TEST_CASE("NICs that share the one port of their node share its rate", "[workloads]") {
  const TinyCluster t{.gpus = 4, .nodes = 2, .port = 5e9};
  Cluster cluster = tiny_cluster(t);
  const auto all = [&] {
    return together(cluster, pairs_plan(cluster, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}), 1e9);
  };
  const double fixed = t.launch + t.network_launch + t.network_step;
  const double alone = 1e9 / (t.network_efficiency * t.port);
  CHECK_THAT(all(), exactly(fixed + alone));
  cluster.network->ports = 2;
  CHECK_THAT(all(), exactly(fixed + 2 * alone));
  cluster.network->ports = 1;
  CHECK_THAT(all(), exactly(fixed + 4 * alone));
  cluster.network->ports = 16;  // more than there are NICs
  CHECK_THAT(all(), exactly(fixed + alone));
}

TEST_CASE("traffic between units of a network shares their uplinks", "[workloads]") {
  // Two nodes to a unit. Pairs across units share one uplink of 1.5 ports, pairs inside do not.
  const TinyCluster t{.gpus = 1, .nodes = 4, .leaf_nodes = 2, .port = 5e9, .uplink = 7.5e9};
  const Cluster cluster = tiny_cluster(t);
  const double bytes = 1e9;
  const double fixed = t.launch + t.network_launch + t.network_step;
  const double wire = bytes / t.network_efficiency;
  CHECK_THAT(together(cluster, pairs_plan(cluster, {{0, 1}, {2, 3}}), bytes),
             exactly(fixed + wire / t.port));
  CHECK_THAT(together(cluster, pairs_plan(cluster, {{0, 2}, {1, 3}}), bytes),
             exactly(fixed + 2 * wire / t.uplink));
}

TEST_CASE("two MI300X talk over the link between them and over no other", "[workloads]") {
  const Cluster cluster = catalogued("mi300x-8");
  const double bytes = 1e9;
  const Timed timed =
      play(cluster, {.kind = Collective::all_reduce, .algorithm = "direct", .ranks = {0, 1}},
           {bytes}, Folding::off);
  std::map<std::string, double> carried;
  for (std::size_t i = 0; i < timed.run.platform.links.size(); ++i)
    carried[timed.run.platform.links[i].name] = timed.run.trace.links[i].bytes;
  std::vector<std::string> names;
  for (const auto& [name, sum] : carried) {
    names.push_back(name);
    CHECK_THAT(sum, exactly(bytes));  // 2 (n - 1) / n of the buffer with n = 2
  }
  CHECK(names == std::vector<std::string>{"engine.gpu0.in", "engine.gpu0.out", "engine.gpu1.in",
                                          "engine.gpu1.out", "xgmi.gpu0>gpu1", "xgmi.gpu1>gpu0"});
  CHECK(only(plan_of(cluster, {.kind = Collective::all_reduce, .ranks = {0, 1}})).algorithm ==
        "direct");
}

TEST_CASE("a collective takes of a GPU what the ports in use can feed", "[workloads]") {
  // Two channels for each port, 24 in a node: eight ports take two thirds as much as a collective
  // inside the node does, four ports half of that, and a group of one rank a node one port's part.
  const auto taken = [](const std::string& name, std::uint32_t nodes, std::vector<Rank> ranks) {
    const Cluster cluster = catalogued(name, nodes);
    return only(plan_collective(cluster, Collective::all_gather, {std::move(ranks)}))
        .patterns.front()
        .occupancy;
  };
  std::vector<Rank> node(8), both(16);
  std::iota(node.begin(), node.end(), Rank{0});
  std::iota(both.begin(), both.end(), Rank{0});
  CHECK(taken("a100-8", 2, node) == 1);
  CHECK_THAT(taken("a100-8", 2, both), exactly(16.0 / 24));
  CHECK_THAT(taken("a100-8-4x100", 2, both), exactly(8.0 / 24));
  CHECK_THAT(taken("a100-8", 2, {0, 8}), exactly(2.0 / 24));
  CHECK(taken("mi300x-8", 2, both) == 1);  // not known there
}

TEST_CASE("compute beside a collective slows it and is slowed by it", "[workloads]") {
  const TinyCluster t{
      .fabric = Fabric::mesh, .gpus = 2, .compute_share = 0.8, .collective_share = 0.5};
  const Cluster cluster = tiny_cluster(t);
  const double bytes = 1e9, work = 1;
  const Traffic traffic = make_traffic(
      machinery_of(cluster),
      {plan_collective(cluster, Collective::all_gather, {{0, 1}}, {.algorithm = "direct"})},
      Folding::automatic);
  ProgramBuilder builder(traffic);
  builder.everywhere({.kind = OpKind::compute, .stream = Stream::compute, .seconds = {work}});
  builder.collective(0, collective_op(bytes, Stream::gather), Stream::gather);
  const Trace trace = replay(traffic.folded.platform, builder.take());
  // Both GPUs are one lane: operation 0 computes, 1 gathers.
  const double gather =
      t.launch + t.step + bytes / 2 / (t.efficiency * t.link * t.collective_share);
  REQUIRE(trace.finish.size() == 2);
  CHECK_THAT(trace.finish[1], exactly(gather));
  CHECK_THAT(trace.finish[0], exactly(gather + work - t.compute_share * gather));
}

}  // namespace stepsim
