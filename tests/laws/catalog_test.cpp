// What holds for every file of the catalogue, so that a new one is tested by being there.
#include "topology/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "scenarios/scenario.hpp"
#include "sim/engine/own/replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/machines.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_cluster.hpp"
#include "tests/support/worker.hpp"
#include "topology/processor.hpp"
#include "workloads/program/program_builder.hpp"

namespace stepsim {
namespace {

const Catalogue& data = source_data();

void check_constants(const std::vector<NamedConstant>& constants) {
  REQUIRE_FALSE(constants.empty());
  for (const NamedConstant& constant : constants) {
    CAPTURE(constant.name);
    CHECK_FALSE(constant.source.empty());
    CHECK(constant.low <= constant.value);
    CHECK(constant.value <= constant.high);
    CHECK(constant.low >= 0);
  }
}

// Every rank computes, then all reduce; in the traces no link may carry more than it can.
void check_step(const Cluster& cluster) {
  const double work = 1e-3, bytes = 1e8;
  const std::vector<double> result = numbers_from_worker([&] {
    const Traffic traffic = make_traffic(
        machinery_of(cluster),
        {plan_collective(cluster, Collective::all_reduce, {all_ranks(cluster)})}, Folding::off);
    ProgramBuilder builder(traffic);
    builder.everywhere({.kind = OpKind::compute, .stream = Stream::compute, .seconds = {work}});
    builder.collective(0, {.kind = OpKind::collective, .stream = Stream::reduce, .bytes = {bytes}},
                       Stream::compute);
    builder.everywhere({.kind = OpKind::compute, .stream = Stream::compute, .seconds = {work}});
    const Trace trace = replay(traffic.folded.platform, builder.take());
    double fullest = 0, carried = 0;
    for (std::size_t i = 0; i < trace.links.size(); ++i) {
      const LinkUse& use = trace.links[i];
      const double capacity = traffic.folded.platform.links[i].capacity.value;
      carried += use.bytes;
      if (use.bytes > 0) fullest = std::max(fullest, use.bytes / (capacity * use.busy.value));
    }
    return std::vector{trace.makespan.value, fullest, carried};
  });
  CHECK(result[0] >= 2 * work);
  CHECK(result[1] > 0);
  CHECK(result[1] <= 1 + 1e-9);
  CHECK(result[2] > 0);
}

// GPUs neither forward nor lend their links: a route touches them at its ends alone.
void check_routes(const Cluster& cluster) {
  const std::uint32_t gpus = cluster.gpus_per_node();
  for (std::uint32_t a = 0; a < gpus; ++a) {
    for (std::uint32_t b = 0; b < gpus; ++b) {
      if (a == b) continue;
      const Path path = route(cluster, place_of(cluster, a), place_of(cluster, b));
      CAPTURE(a, b);
      REQUIRE_FALSE(path.empty());
      for (std::uint32_t other = 0; other < gpus; ++other) {
        if (other == a || other == b) continue;
        for (const LinkId link : path) {
          const std::string name = link_of(cluster, link).name + ">";
          CHECK(name.find(fmt::format("gpu{}>", other)) == std::string::npos);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("every optimizer's file loads and names its sources", "[laws]") {
  const std::vector<std::string> names = names_on(data, optimizer_shelf);
  REQUIRE_FALSE(names.empty());
  for (const std::string& name : names) {
    CAPTURE(name);
    const Document document = open_entry(data, optimizer_shelf, name);
    const Optimizer optimizer = read_optimizer(document.root());
    CHECK_NOTHROW(document.finish());
    check_constants(document.constants());
    CHECK(optimizer.name == name);
    CHECK((optimizer.kernels.empty() != (optimizer.own_launches == 0)));
    if (!optimizer.smaller.empty())
      CHECK_NOTHROW(open_entry(data, optimizer_shelf, optimizer.smaller));
  }
}

TEST_CASE("every format's and every adapter's file loads and names its sources", "[laws]") {
  for (const std::string& name : names_on(data, format_shelf)) {
    CAPTURE(name);
    const Document document = open_entry(data, format_shelf, name);
    const WeightFormat format = read_format(document.root());
    CHECK_NOTHROW(document.finish());
    check_constants(document.constants());
    CHECK(format.name == name);
    CHECK(format.packs());
    CHECK((format.backward.kernels > 0 || format.copy > 0 || format.narrow));
  }
  for (const std::string& name : names_on(data, adapter_shelf)) {
    CAPTURE(name);
    const Document document = open_entry(data, adapter_shelf, name);
    const AdapterMethod method = read_adapter_method(document.root());
    CHECK_NOTHROW(document.finish());
    check_constants(document.constants());
    CHECK(method.name == name);
    CHECK_FALSE(method.tensors.empty());
  }
}

TEST_CASE("each constant of each node can be asked at both ends of its range", "[laws]") {
  for (const std::string& name : names_on(data, node_shelf)) {
    CAPTURE(name);
    const ClusterChoice choice{.name = name};
    for (const NamedConstant& constant : load_cluster(data, choice, {}, {}).constants)
      for (const double end : {constant.low, constant.high}) {
        CAPTURE(constant.name, end);
        const GivenConstant given{constant.name, end};
        const Gpu::Memory memory = load_cluster(data, choice, {}, {&given, 1}).gpu.memory;
        CHECK(memory.usable.value <= memory.capacity.value);
        CHECK(memory.usable.low <= memory.usable.value);
        CHECK(memory.usable.value <= memory.usable.high);
      }
    for (std::uint32_t sample = 0; sample < 8; ++sample) {
      const Draw draw{.seed = 1, .sample = sample, .of = 8};
      const Gpu::Memory memory = load_cluster(data, choice, draw, {}).gpu.memory;
      CHECK(memory.usable.value <= memory.capacity.value);
    }
  }
}

TEST_CASE("more than the capacity cannot be usable", "[laws]") {
  const GivenConstant given{"gpu.memory.usable", 300e9};
  CHECK_THROWS_WITH(load_cluster(data, {.name = "mi325x-8"}, {}, {&given, 1}),
                    Catch::Contains("memory.usable: is more than the capacity"));
}

TEST_CASE("a key of a GPU's file that nothing reads is refused", "[laws]") {
  for (const std::string& name : names_on(data, gpu_shelf)) {
    Document document = open_entry(data, gpu_shelf, name);
    document.set("gemm.rates", "1 TFLOP/s");
    read_gpu(document.root());
    CHECK_THROWS_WITH(document.finish(),
                      Catch::Contains("gemm.rates: unknown key (did you mean \"rate\"?)"));
  }
}

TEST_CASE("every GPU file loads and names its sources", "[laws]") {
  const std::vector<std::string> names = names_on(data, gpu_shelf);
  REQUIRE_FALSE(names.empty());
  for (const std::string& name : names) {
    CAPTURE(name);
    const Document document = open_entry(data, gpu_shelf, name);
    CHECK(read_gpu(document.root()).name == name);
    CHECK_NOTHROW(document.finish());
    check_constants(document.constants());
  }
}

TEST_CASE("every node file loads and names its sources", "[laws]") {
  const std::vector<std::string> names = names_on(data, node_shelf);
  REQUIRE_FALSE(names.empty());
  for (const std::string& name : names) {
    CAPTURE(name);
    const Document document = open_entry(data, node_shelf, name);
    const Node node = read_node(document.root());
    CHECK(node.name == name);
    CHECK_NOTHROW(document.finish());
    check_constants(document.constants());
    CHECK_NOTHROW(open_entry(data, gpu_shelf, node.gpu));
    if (!node.network.empty()) CHECK_NOTHROW(open_entry(data, network_shelf, node.network));
  }
}

TEST_CASE("every network file loads and names its sources", "[laws]") {
  const std::vector<std::string> names = names_on(data, network_shelf);
  REQUIRE_FALSE(names.empty());
  for (const std::string& name : names) {
    CAPTURE(name);
    const Document document = open_entry(data, network_shelf, name);
    CHECK(read_network(document.root(), 8).name == name);
    CHECK_NOTHROW(document.finish());
    check_constants(document.constants());
  }
}

TEST_CASE("every processor file loads and names its sources", "[laws]") {
  const std::vector<std::string> names = names_on(data, processor_shelf);
  REQUIRE_FALSE(names.empty());
  for (const std::string& name : names) {
    CAPTURE(name);
    const Document document = open_entry(data, processor_shelf, name);
    CHECK(read_processor(document.root()).name == name);
    CHECK_NOTHROW(document.finish());
    check_constants(document.constants());
  }
}

TEST_CASE("the range of a host reaches over all processors that it may have", "[laws]") {
  for (const std::string& node : names_on(data, node_shelf)) {
    CAPTURE(node);
    const Cluster usual = load_cluster(data, {.name = node});
    const Constant<Ratio>& speed = usual.node.host.core_speed;
    REQUIRE_FALSE(usual.node.processors.empty());
    for (const std::string& name : usual.node.processors) {
      CAPTURE(name);
      const Constant<Ratio> one =
          load_cluster(data, {.name = node, .processor = name}).node.host.core_speed;
      CHECK(one == read_processor(open_entry(data, processor_shelf, name).root()).core_speed);
      CHECK(speed.low.value <= one.low.value);
      CHECK(speed.high.value >= one.high.value);
      if (name == usual.node.processors.front()) CHECK(speed.value.value == one.value.value);
    }
  }
}

TEST_CASE("a host is as fast as its node's own file says, unless a processor is named", "[laws]") {
  const TemporaryFolder folder;
  const std::filesystem::path nodes = folder.file("topology/nodes");
  std::filesystem::create_directories(nodes);
  std::ofstream(nodes / "mine.yaml") << "name: mine\ntitle: Mine\nlike: h100-8\nhost:\n  "
                                        "core_speed: {value: 2, grade: guess, source: mine}\n";
  std::ofstream(nodes / "lost.yaml")
      << "name: lost\ntitle: Lost\nlike: h100-8\nprocessors: [xeon-8480d]\n";
  const Catalogue both({STEPSIM_SOURCE_DATA, folder.path()});
  const Constant<Ratio> own = load_cluster(both, {.name = "mine"}).node.host.core_speed;
  CHECK(own.value.value == 2);
  CHECK(own.high.value == 2);
  CHECK(
      load_cluster(both, {.name = "mine", .processor = "grace"}).node.host.core_speed.value.value <
      1);
  std::ofstream(nodes / "far.yaml") << "name: far\ntitle: Far\nlike: workloads/pytorhc\n";
  CHECK_THROWS_WITH(load_cluster(both, {.name = "far"}),
                    Catch::Contains("like: no file workloads/pytorhc.yaml in the catalogue"));
  CHECK_THROWS_WITH(load_cluster(both, {.name = "lost"}),
                    Catch::Contains("no processor \"xeon-8480d\" (did you mean \"xeon-8480c\"?)"));
}

TEST_CASE("every cluster file names a node and a network that exist", "[laws]") {
  const std::vector<std::string> names = names_on(data, cluster_shelf);
  REQUIRE_FALSE(names.empty());
  for (const std::string& name : names) {
    CAPTURE(name);
    const Cluster cluster = load({name, 2});
    CHECK(cluster.network);
    CHECK(cluster.ranks() == 2 * cluster.gpus_per_node());
    check_constants(cluster.constants);
  }
}

TEST_CASE("every algorithm that a file names exists and carries its collective", "[laws]") {
  const auto check = [](const Cluster& cluster, const Communication& communication) {
    for (const auto& [kind, algorithms] : communication.algorithms)
      for (const std::string& algorithm : algorithms) {
        CAPTURE(cluster.name, cluster.nodes, kind, algorithm);
        const auto place = std::find(collective_kinds.begin(), collective_kinds.end(), kind);
        const auto number = static_cast<Collective>(place - collective_kinds.begin());
        CHECK_NOTHROW(plan_collective(cluster, number, {all_ranks(cluster)},
                                      {.algorithm = algorithm.substr(0, algorithm.find(' '))}));
      }
  };
  for (const std::string& name : names_on(data, node_shelf))
    if (const Cluster cluster = load({name, 1}); cluster.ranks() > 1)
      check(cluster, cluster.node.collectives);
  for (const std::string& name : names_on(data, cluster_shelf)) {
    const Cluster cluster = load({name, 2});
    check(cluster, cluster.network->collectives);
  }
}

TEST_CASE("every node runs a step of two ranks or more and fills no link beyond its capacity",
          "[laws]") {
  for (const std::string& name : names_on(data, node_shelf)) {
    CAPTURE(name);
    if (const Cluster cluster = load({name, 1}); cluster.ranks() > 1) check_step(cluster);
  }
}

TEST_CASE("every cluster runs a step of two nodes and fills no link beyond its capacity",
          "[laws]") {
  for (const std::string& name : names_on(data, cluster_shelf)) {
    CAPTURE(name);
    check_step(load({name, 2}));
  }
}

TEST_CASE("no route leads through a GPU", "[laws]") {
  for (const std::string& name : names_on(data, node_shelf)) {
    CAPTURE(name);
    check_routes(load({name, 1}));
  }
}

TEST_CASE("every GPU reaches host memory and host memory every GPU", "[laws]") {
  for (const std::string& name : names_on(data, node_shelf)) {
    CAPTURE(name);
    const Cluster cluster = load({name, 1});
    for (const Copy direction : {Copy::h2d, Copy::d2h})
      CHECK_NOTHROW(plan_copy(cluster, direction, all_ranks(cluster)));
  }
}

}  // namespace stepsim
