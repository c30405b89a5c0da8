#include "sim/implied_links.hpp"

#include <algorithm>

namespace stepsim {
namespace {

// Calls use(link, neighbour) along all paths; the neighbour feeds the link or is fed by it, and
// is the link itself where a path ends.
template <class Use>
void for_each_pair(std::span<const Family> families, bool feeding, Use use) {
  for (const Family& family : families)
    for (const Pattern& pattern : family)
      for (const Round& round : pattern.rounds)
        for (const Flow& flow : round.flows)
          for (std::size_t i = 0; i < flow.path.size(); ++i) {
            const std::size_t next = std::min(i + 1, flow.path.size() - 1);
            use(flow.path[i], flow.path[feeding ? (i == 0 ? 0 : i - 1) : next]);
          }
}

}  // namespace

ImpliedLinks::ImpliedLinks(const Machinery& machinery, std::span<const Family> families)
    : machinery_(machinery),
      implied_(machinery.links, 0),
      pinned_(machinery.links, 0),
      capacity_(machinery.links, 0) {
  for (Rank rank = 0; rank < machinery.ranks; ++rank)  // engines change their capacity
    for (const LinkId engine : machinery.device(rank).engines) pinned_[index(engine)] = 1;
  leave_out(families, true);
  leave_out(families, false);
}

double ImpliedLinks::capacity(LinkId id) {
  double& known = capacity_[index(id)];
  if (known == 0) known = machinery_.capacity(id).value;
  return known;
}

void ImpliedLinks::leave_out(std::span<const Family> families, bool feeding) {
  // A neighbour of more than half the width is a cable in two pieces: worth showing in a trace.
  std::vector<std::uint8_t> stays = pinned_;
  for_each_pair(families, feeding, [&](LinkId link, LinkId neighbour) {
    if (stays[index(link)] == 0 && 2 * capacity(neighbour) > capacity(link)) stays[index(link)] = 1;
  });
  std::vector<Pair> pairs;
  for_each_pair(families, feeding, [&](LinkId link, LinkId neighbour) {
    if (stays[index(link)] == 0) pairs.emplace_back(link, neighbour);
  });
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (std::size_t from = 0, to = 0; from < pairs.size(); from = to) {
    while (to < pairs.size() && pairs[to].first == pairs[from].first) ++to;
    decide(std::span(pairs).subspan(from, to - from));
  }
}

void ImpliedLinks::decide(std::span<const Pair> neighbours) {
  const LinkId link = neighbours.front().first;
  if (pinned_[index(link)] != 0 || implied_[index(link)] != 0) return;
  double sum = 0;
  for (const auto& [self, neighbour] : neighbours) {
    if (implied_[index(neighbour)] != 0) return;
    sum += capacity(neighbour);
  }
  if (sum > capacity(link)) return;
  implied_[index(link)] = 1;
  for (const auto& [self, neighbour] : neighbours) pinned_[index(neighbour)] = 1;
}

}  // namespace stepsim
