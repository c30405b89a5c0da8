// The machine and the software of a row, by the words that the files of the catalogue list.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/rows/row_parts.hpp"

namespace stepsim {

void write_cluster(const StepRow& row, const RowCatalog& catalog, RowText& text) {
  const std::string where = row.hardware + "; " + row.interconnect;
  const RowCatalog::NodeSize* node = catalog.node(best_name(catalog.machines.nodes, where));
  if (node == nullptr) {
    text.lack(row.hardware.empty() ? "the hardware"
                                   : fmt::format("the hardware \"{}\"", row.hardware));
    return;
  }
  text.gpu = node->gpu;
  double gpus = row.gpus.value_or(0), nodes = row.nodes.value_or(0);
  if (gpus < 1 && nodes < 1) {
    text.lack("the number of GPUs");
    return;
  }
  if (gpus < 1) {
    gpus = nodes * node->gpus;
    text.assume(fmt::format("{} GPUs in a node", node->gpus));
  }
  if (nodes < 1) nodes = std::ceil(gpus / node->gpus);
  const double each = gpus / nodes;
  if (each != std::floor(each) || each > node->gpus) {
    text.lack(fmt::format("a node of {:g} GPUs \"{}\"", each, row.hardware));
    return;
  }
  text.cluster = fmt::format("cluster:\n  node: {}\n  nodes: {:.0f}\n", node->name, nodes);
  if (each < node->gpus) text.cluster += fmt::format("  gpus_per_node: {:.0f}\n", each);
  if (nodes < 2) return;
  const std::string network = best_name(catalog.machines.networks, where);
  if (!network.empty())
    text.cluster += fmt::format("  network: {}\n", network);
  else
    text.assume("the usual network of the node");
}

void write_stack(const StepRow& row, const RowCatalog& catalog, RowText& text) {
  text.stack = first_name(catalog.stacks, row.framework);
  if (text.stack.empty())
    text.lack(row.framework.empty() ? "the framework"
                                    : fmt::format("the framework \"{}\"", row.framework));
}

}  // namespace stepsim
