// These tests call cards as people do, and share GPUs among nodes.
#include "topology/called.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

const Catalogue& data = source_data();

// Returns "a100-sxm-80 x 8" of "8xA100-80G"; "none" where the words are no card.
std::string card(const std::string& words) {
  const auto found = card_called(data, words);
  return found ? fmt::format("{} x {}", found->gpu, found->count) : "none";
}

// Returns "2 x h100-8", or "2 x 4 of h100-8".
std::string machine(const std::string& name, std::uint32_t all) {
  ClusterChoice choice{.name = name};
  settle_machine(data, all, choice);
  const std::string node =
      choice.gpus ? fmt::format("{} of {}", *choice.gpus, choice.name) : choice.name;
  return fmt::format("{} x {}", choice.nodes.value_or(1), node);
}

}  // namespace

TEST_CASE("cards are found as people write them", "[topology]") {
  CHECK(card("h100") == "h100-sxm x 0");
  CHECK(card("NVIDIA H100 80GB HBM3") == "h100-sxm x 0");
  CHECK(card("NVIDIA H100 PCIe") == "h100-pcie x 0");
  CHECK(card("H100-NVL") == "h100-nvl x 0");
  CHECK(card("A100-80G") == "a100-sxm-80 x 0");
  CHECK(card("NVIDIA A100-SXM4-40GB") == "a100-sxm-40 x 0");
  CHECK(card("a100") == "a100-sxm-80 x 0");
  CHECK(card("4090") == "rtx-4090 x 0");
  CHECK(card("RTX 4090 24GB") == "rtx-4090 x 0");
  CHECK(card("NVIDIA GeForce RTX 3090 Ti") == "rtx-3090-ti x 0");
  CHECK(card("3090ti") == "rtx-3090-ti x 0");
  CHECK(card("RTX A6000") == "a6000 x 0");
  CHECK(card("RTX 6000 Ada Generation") == "rtx-6000-ada x 0");
  CHECK(card("Tesla T4") == "t4 x 0");
  CHECK(card("V100-32g") == "v100-sxm2-32 x 0");
  CHECK(card("AMD Instinct MI300X OAM") == "mi300x x 0");
  CHECK(card("DGX Spark") == "gb10 x 0");
  CHECK(card("h100:4") == "h100-sxm x 4");
  CHECK(card("8xH100") == "h100-sxm x 8");
  CHECK(card("A100-80GB:8") == "a100-sxm-80 x 8");
  CHECK(card("2 x 3090") == "rtx-3090 x 2");
  CHECK(card("h100x8") == "h100-sxm x 8");
  CHECK(card("mi300x") == "mi300x x 0");
}

TEST_CASE("what is no card of the catalogue is not taken for one", "[topology]") {
  for (const char* words : {"mi300x-9", "4090 48GB", "b400", "", "gpu", "h100-7b"})
    CHECK(card(words) == "none");
}

TEST_CASE("a card becomes the smallest node that has so many", "[topology]") {
  CHECK(machine("h100", 0) == "1 x h100-1");
  CHECK(machine("h100", 3) == "1 x 3 of h100-4");
  CHECK(machine("h100:8", 0) == "1 x h100-8");
  CHECK(machine("h100", 16) == "2 x h100-8");
  CHECK(machine("RTX 3090", 2) == "1 x rtx3090-2");
  CHECK(machine("h100-8", 2) == "1 x 2 of h100-8");
  CHECK(machine("A800-80G", 4) == "1 x 4 of a800-8");
  CHECK(machine("a800:4", 0) == "1 x 4 of a800-8");
  CHECK(machine("2x H800", 0) == "1 x 2 of h800-8");
  CHECK(machine("a800:4", 16) == "2 x a800-8");
  CHECK(machine("aws-p5", 32) == "4 x aws-p5");
  CHECK_THROWS_WITH(machine("h100-8", 12),
                    Catch::Contains("12 GPUs are no whole number of nodes of 8 (h100-8): 8 or 16"));
  CHECK_THROWS_WITH(machine("a6000-1", 8388608), Catch::Contains("expected at most 8192 nodes"));
}

TEST_CASE("machines that are not modelled are named, with what is near", "[topology]") {
  CHECK_THAT(why_no_machine(data, "TPU v5e"), Catch::Contains("TPUs are not modelled"));
  CHECK_THAT(why_no_machine(data, "gaudi2"), Catch::Contains("Gaudi is not modelled"));
  CHECK_THAT(why_no_machine(data, "mps"), Catch::Contains("Macs"));
  CHECK_THAT(why_no_machine(data, "trn1"), Catch::Contains("Trainium"));
  CHECK(why_no_machine(data, "h100").empty());
  CHECK(why_no_machine(data, "mi300x-8").empty());
}

TEST_CASE("every card of the catalogue is found by its own name and has a node", "[topology]") {
  for (const std::string& gpu : names_on(data, gpu_shelf)) {
    CAPTURE(gpu);
    const auto found = card_called(data, gpu);
    REQUIRE(found);
    CHECK(found->gpu == gpu);
    std::uint32_t gpus = 0;
    CHECK_FALSE(node_of_card(data, gpu, 1, gpus).empty());
    CHECK(gpus >= 1);
  }
}

}  // namespace stepsim
