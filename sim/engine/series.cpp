#include "sim/engine/series.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "sim/base/draw.hpp"

namespace stepsim {
namespace {

// One number per link that says which flows cross it and how often; 0: none.
std::vector<std::uint64_t> crossings(std::size_t links, const OpGraph& graph) {
  std::vector<std::uint64_t> sums(links, 0);
  std::uint64_t flows = 0;
  for (const Pattern& pattern : graph.patterns())
    for (const Round& round : pattern.rounds)
      for (const Flow& flow : round.flows) {
        const std::uint64_t mark = scrambled(++flows);
        for (const LinkId link : flow.path) sums[index(link)] += mark;
      }
  return sums;
}

}  // namespace

Series::Series(std::span<const Link> links, const OpGraph& graph, bool apart)
    : links_(links), first_(links.size(), unused), next_(links.size(), unused) {
  share_.assign(links.size(), 1);
  changed_.assign(links.size(), 1);
  if (apart) {
    for (std::uint32_t i = 0; i < links.size(); ++i) first_[i] = LinkId{i};
    return;
  }
  const std::vector<std::uint64_t> sums = crossings(links.size(), graph);
  std::unordered_map<std::uint64_t, LinkId> last;  // looked up, never iterated
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    if (sums[i] == 0) continue;
    const auto [place, added] = last.try_emplace(sums[i], LinkId{i});
    first_[i] = added ? LinkId{i} : first_[index(place->second)];
    if (!added) next_[index(place->second)] = LinkId{i};
    place->second = LinkId{i};
  }
}

double Series::width(LinkId id) const {
  double width = std::numeric_limits<double>::infinity();
  for (LinkId at = first(id); at != unused; at = next_[index(at)]) {
    const Link& link = links_[index(at)];
    width = std::min(width,
                     share_[index(at)] * changed_[index(at)] * link.capacity.value / link.weight);
  }
  return width;
}

}  // namespace stepsim
