#include "sim/ideal.hpp"

namespace stepsim {

OpGraph idealised(const OpGraph& graph, CauseSet causes) {
  OpGraph result = graph;
  for (std::size_t i = 0; i < graph.size(); ++i)
    if (const OpId id{static_cast<std::uint32_t>(i)}; causes.has(graph[id].cause))
      result.make_free(id);
  return result;
}

}  // namespace stepsim
