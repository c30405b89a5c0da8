#include "sim/stretch.hpp"

namespace stepsim {

void stretch(Platform& platform, OpGraph& graph, double factor) {
  if (factor == 1) return;
  for (Link& link : platform.links) link.capacity = link.capacity / factor;
  graph.stretch(factor);
}

}  // namespace stepsim
