#include <algorithm>

#include "scenarios/read/scenario_reader.hpp"
#include "scenarios/rows/expressed_row.hpp"
#include "scenarios/rows/machine_cells.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

const std::string data = STEPSIM_SOURCE_DATA;

const RowCatalog& catalog() {
  static const RowCatalog all = row_catalog(data);
  return all;
}

std::string node_of(std::string_view hardware, std::string_view interconnect = "",
                    std::optional<double> memory = {}) {
  const NamedNode named = named_node(catalog(), {hardware, interconnect, memory});
  return named.node == nullptr ? named.why : named.node->name;
}

ExpressedRow made_of(const std::string& hardware, const std::string& nodes, const std::string& gpus,
                     const std::string& interconnect) {
  const std::string text =
      "id,hardware,nodes,gpus,interconnect,framework,model,seq_len,strategy,micro_batch,step_s\n"
      "r,\"" +
      hardware + "\"," + nodes + "," + gpus + ",\"" + interconnect +
      "\",torchtitan (FSDP2),Llama-3.1-8B,2048,FSDP2,1,1\n";
  return express(step_rows(parse_csv(text, "r.csv")).front(), catalog());
}

// Bytes a second that leave a node of two with 16 GPUs.
double rate_of(const std::string& hardware, const std::string& interconnect) {
  const ExpressedRow made = made_of(hardware, "2", "16", interconnect);
  REQUIRE(made.missing.empty());
  const Cluster cluster = parse_scenario(data, made.scenario, "r").cluster;
  return cluster.network->port.value.value * cluster.node.count(PartKind::nic);
}

bool assumes(const ExpressedRow& row, const std::string& what) {
  return std::find(row.assumed.begin(), row.assumed.end(), what) != row.assumed.end();
}

}  // namespace

TEST_CASE("a card has the form that its name says", "[scenarios]") {
  CHECK(node_of("H100-80GB PCIe") == "h100-pcie-2");
  CHECK(node_of("A100-80GB PCIe") == "a100-pcie-2");
  CHECK(node_of("NVIDIA A100-PCIE-80GB") == "a100-pcie-2");
  CHECK(node_of("8xH100-SXM5-80GB") == "h100-8");
  CHECK(node_of("A100-SXM4-40GB, PCIe gen4 to the host") == "a100-8-40");
  CHECK(node_of("RTX PRO 6000 PCIe") == "rtxpro6000-2");
  CHECK(node_of("A800-80GB PCIe") ==
        "the hardware \"A800-80GB PCIe\": of that name the catalogue has a800-8");
  for (const char* card : {"H100 NVL", "H100NVL", "H100 NVL 94GB"})
    CHECK_THAT(node_of(card), Contains("of that name the catalogue has h100-8, h100-8-96"));
}

TEST_CASE("a row that names its processor gets it", "[scenarios]") {
  const auto processor_of = [](const std::string& hardware) {
    const ExpressedRow made = made_of(hardware, "1", "8", "");
    REQUIRE(made.missing.empty());
    return parse_scenario(data, made.scenario, "r").cluster.node.processors.front();
  };
  CHECK(processor_of("A100-SXM4-40GB, 2x EPYC 7742, 1 TB host memory") == "epyc-7742");
  CHECK(processor_of("8x H200-141GB, AMD EPYC 9575F") == "epyc-9575f");
  CHECK(processor_of("A100-80GB SXM") == "epyc-7763");
}

TEST_CASE("names of cards match whole words", "[scenarios]") {
  CHECK(node_of("GB200") == "the hardware \"GB200\"");
  CHECK(node_of("GB300 NVL72") == "the hardware \"GB300 NVL72\"");
  CHECK(node_of("GH200-95GB (Isambard-AI, 4 per node)") == "gh200-4");
  CHECK(node_of("B200-192GB") == "b200-8");
  CHECK(node_of("H20", "as fast as H100") == "h20-8");
  CHECK(node_of("", "H100") == "the hardware");
}

TEST_CASE("a card has the size that is said of it, or is refused", "[scenarios]") {
  for (const char* card : {"A100 40 GB", "A100 (40GB)", "A100-40G", "A100 40GiB"})
    CHECK(node_of(card) == "a100-8-40");
  CHECK(node_of("A100", "", 40) == "a100-8-40");
  CHECK(node_of("A100", "", 80) == "a100-8");
  CHECK(node_of("A100") == "a100-8");
  CHECK(node_of("H20-141GB") == "h20-8-141");
  CHECK(node_of("MI250X", "", 128) == "mi250x-8");  // two dies of 64 GB
  CHECK(node_of("GH200 480GB", "", 96) == "gh200-4");
  for (const char* card : {"A100-64GB", "A800-40GB", "H100-64GB"})
    CHECK_THAT(node_of(card), Contains("of that name the catalogue has"));
  CHECK(node_of("A100-80GB", "", 40) ==
        "one size of the GPU: 80 GB in \"A100-80GB\", gpu_mem_GB 40");
}

TEST_CASE("how many GPUs a node has is read, or refused where cards are in slots", "[scenarios]") {
  CHECK(gpus_in_a_node("NVLink intra-node (4 GPUs/node), NDR") == 4);
  CHECK(gpus_in_a_node("GH200 (Alps, 4 per node)") == 4);
  CHECK(gpus_in_a_node("8x200 Gb HDR per node; 400 Gbps per node; 4 nodes") == 0);
  const ExpressedRow fours = made_of("H100", "", "8", "4 GPUs/node");
  REQUIRE(fours.missing.empty());
  const Cluster cluster = parse_scenario(data, fours.scenario, "r").cluster;
  CHECK(cluster.nodes == 2);
  CHECK(cluster.gpus_per_node() == 4);
  CHECK(made_of("A100-PCIe-80GB", "", "8", "").missing ==
        std::vector<std::string>{"how many nodes have the 8 GPUs \"A100-PCIe-80GB\""});
  CHECK(assumes(made_of("H100", "", "16", ""), "2 nodes of 8 GPUs"));
}

TEST_CASE("rates are read with what they are of", "[scenarios]") {
  using Of = StatedRate::Of;
  const auto is = [](std::string_view text, double gigabits, Of of) {
    const auto rate = stated_rate(text);
    return rate && rate->gigabits == gigabits && rate->of == of;
  };
  CHECK(is("NVLink; 4x100 Gb RoCE per node", 400, Of::node));
  CHECK(is("8 x 400Gb/s IB", 3200, Of::node));
  CHECK(is("EFA 3.2 Tb/s", 3200, Of::unsaid));
  CHECK(is("NVLink 900 Gb/s, Slingshot-11 200 Gb/s per GPU", 200, Of::gpu));
  CHECK(is("1600 Gbps/node", 1600, Of::node));
  CHECK(stated_rate("8x100/200 Gb RoCE")->other == 1600);
  CHECK_FALSE(stated_rate("InfiniBand NDR400, 50 GB/s").has_value());
}

TEST_CASE("as much leaves a node as the row says", "[scenarios]") {
  constexpr double gigabit = 1e9 / 8;
  const auto carries = [&](const char* hardware, const char* interconnect, double gigabits) {
    return rate_of(hardware, interconnect) == Approx(gigabits * gigabit).epsilon(0.1);
  };
  CHECK(carries("H100-80GB", "400 Gbps per node", 400));
  CHECK(carries("H100-80GB", "800 Gbps per node", 800));
  CHECK(carries("A100-80GB", "400 Gbps per node", 400));
  CHECK(carries("A100-80GB", "EFA 400 Gbps", 400));
  CHECK(carries("A100-40GB", "EFA 400 Gbps", 400));
  CHECK(carries("H100", "EFA", 3200));
  CHECK(carries("A100", "RoCE", 1600));
  CHECK(carries("A100", "4x400 Gb RoCE", 1600));
  CHECK(carries("H100", "NVLink; 8x100 Gb RoCE", 800));
  CHECK(carries("MI300X", "RoCE", 3200));
  CHECK(carries("H100", "InfiniBand NDR400", 3200));
  CHECK(assumes(made_of("H100-80GB", "2", "16", "400 Gbps per node"),
                "roce-100 at 400 Gb/s in each node"));
  CHECK(assumes(made_of("H100", "2", "16", "InfiniBand 200 Gb/s"), "200 Gb/s for each GPU"));
  CHECK(assumes(made_of("H100", "2", "16", "NVLink (default settings)"),
                "the usual network of the node"));
}
