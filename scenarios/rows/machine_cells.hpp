// The cells of a row say this of its machine: cards by name, size and form, and rates of networks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/rows/row_catalog.hpp"

namespace stepsim {

// Returns letters and digits that stand together, in small letters: "8xH100-SXM5" is {"h100",
// "sxm5"}.
std::vector<std::string> machine_words_in(std::string_view text);

struct CardCells {
  std::string_view hardware, interconnect;
  std::optional<double> memory{};  // of one GPU, in GB or GiB
};
struct NamedNode {
  const RowCatalog::NodeSize* node = nullptr;
  std::string why;  // there is none
};
// The node with the GPU that the hardware cell names, in the size and form that it says. The
// interconnect only chooses among nodes with that GPU.
NamedNode named_node(const RowCatalog& catalog, const CardCells& cells);
// GPUs are cards in slots: how many a host has does not follow from what they are.
bool in_slots(const RowCatalog& catalog, std::string_view node);

// Reads "4 GPUs/node", "4 per node"; 0: there is nothing like that.
double gpus_in_a_node(std::string_view text);

// A rate as a cell prints it: "8x200 Gb", "400 Gb/s per GPU", "1600 Gbps per node".
struct StatedRate {
  enum class Of : std::uint8_t { node, gpu, unsaid };
  double gigabits = 0;  // per second
  double other = 0;     // "100/200 Gb": it may be that; 0: it is clear
  Of of = Of::unsaid;
};
// The first that is not one of links inside the node.
std::optional<StatedRate> stated_rate(std::string_view interconnect);

}  // namespace stepsim
