#include "scenarios/rows/machine_cells.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

using namespace stepsim;

namespace {

std::string node_of(std::string_view hardware) {
  static const MachineWords machines = machine_words(source_data());
  const auto node = named_node(machines, hardware);
  return node ? machines.nodes[*node].first : "";
}

}  // namespace

TEST_CASE("a card has the form that its name says", "[scenarios]") {
  CHECK(node_of("H100-80GB PCIe") == "h100-pcie-2");
  CHECK(node_of("A100-80GB PCIe") == "a100-pcie-2");
  CHECK(node_of("NVIDIA A100-PCIE-80GB") == "a100-pcie-2");
  CHECK(node_of("8xH100-SXM5-80GB") == "h100-8");
  CHECK(node_of("A100-SXM4-40GB, PCIe gen4 to the host") == "a100-8-40");
  CHECK(node_of("RTX PRO 6000 PCIe") == "rtxpro6000-2");
  CHECK(node_of("A800-80GB PCIe").empty());
  for (const char* card : {"H100 NVL", "H100NVL", "H100 NVL 94GB"})
    CHECK(node_of(card).starts_with("h100-nvl-"));
}

TEST_CASE("names of cards match whole words, and sizes are those of the card", "[scenarios]") {
  CHECK(node_of("MI300X-192GB") == "mi300x-8");
  CHECK(node_of("H100-96GB") == "h100-8-96");
  CHECK(node_of("A100-40GB") == "a100-8-40");
  for (const char* card : {"A100-64GB", "GB200", "XH100X", "TPU v5p", ""})
    CHECK(node_of(card).empty());
}
