#include "sim/stretch.hpp"

namespace stepsim {

void stretch(Platform& platform, double factor) {
  if (factor == 1) return;
  for (Link& link : platform.links) link.capacity = link.capacity / factor;
}

void stretch(OpGraph& graph, double factor) {
  if (factor != 1) graph.stretch(factor);
}

}  // namespace stepsim
