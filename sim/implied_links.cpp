#include "sim/implied_links.hpp"

#include <algorithm>

namespace stepsim {
namespace {

// Visits the links of a path, one behind the other.
template <class Use>
void for_each_pair(const Path& path, bool feeding, Use use) {
  for (std::size_t i = 1; i < path.size(); ++i) {
    const LinkId first = path[i - 1], next = path[i];
    feeding ? use(next, first) : use(first, next);
  }
}

using Crossings = std::vector<std::pair<LinkId, std::uint32_t>>;  // a link, and of which place

// Lists each once: a port may serve several ranks.
Crossings each_once(Crossings list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

// Visits the ways out of places and into others, and from area to area.
template <class Use>
void for_each_pair(const Exchange& exchange, bool feeding, Use use) {
  const auto behind = [&](LinkId first, LinkId next) {
    feeding ? use(next, first) : use(first, next);
  };
  std::map<std::uint32_t, std::array<Crossings, 2>> areas;  // out of its places, and into them
  std::map<std::uint32_t, std::pair<LinkId, LinkId>> trunks;
  for (const FarEnd& end : exchange.ends) {
    for_each_pair(end.out, feeding, use);
    for_each_pair(end.in, feeding, use);
    feeding ? use(end.out.front(), end.out.front()) : use(end.in.back(), end.in.back());
    areas[end.area][0].emplace_back(end.out.back(), end.place);
    areas[end.area][1].emplace_back(end.in.front(), end.place);
    trunks.try_emplace(end.area, end.up, end.down);
  }
  for (auto& [area, crossings] : areas) {
    for (Crossings& list : crossings) list = each_once(std::move(list));
    for (const auto& [out, from] : crossings[0])
      for (const auto& [in, to] : crossings[1])
        if (from != to) behind(out, in);
    if (areas.size() == 1) continue;
    for (const auto& [out, from] : crossings[0]) behind(out, trunks.at(area).first);
    for (const auto& [in, to] : crossings[1]) behind(trunks.at(area).second, in);
    for (const auto& [other, links] : trunks)
      if (other != area) behind(trunks.at(area).first, links.second);
  }
}

// Calls use(link, neighbour) along all paths; the neighbour feeds the link or is fed by it, and
// is the link itself where a path ends.
template <class Use>
void for_each_pair(std::span<const Family> families, const Twins& twins, bool feeding, Use use) {
  const auto for_each_round = [&](const auto& look) {
    for (std::uint32_t family = 0; family < families.size(); ++family)
      if (!is_twin(twins, family))
        for (const Pattern& pattern : families[family])
          for (const Round& round : pattern.rounds) look(round);
  };
  for_each_round([&](const Round& round) {
    for (const Flow& flow : round.flows) {
      if (feeding) use(flow.path.front(), flow.path.front());
      for_each_pair(flow.path, feeding, use);
      if (!feeding) use(flow.path.back(), flow.path.back());
    }
  });
  for_each_round([&](const Round& round) { for_each_pair(round.exchange, feeding, use); });
}

}  // namespace

ImpliedLinks::ImpliedLinks(const Machinery& machinery, std::span<const Family> families,
                           const Twins& twins)
    : machinery_(machinery),
      implied_(machinery.links, 0),
      pinned_(machinery.links, 0),
      capacity_(machinery.links, 0) {
  for (Rank rank = 0; rank < machinery.ranks; ++rank)  // engines change their capacity
    for (const LinkId engine : machinery.device(rank).engines) pinned_[index(engine)] = 1;
  for (const LinkId link : machinery.changing) pinned_[index(link)] = 1;
  leave_out(families, twins, true);
  leave_out(families, twins, false);
}

double ImpliedLinks::capacity(LinkId id) {
  double& known = capacity_[index(id)];
  if (known == 0) known = machinery_.capacity(id).value;
  return known;
}

void ImpliedLinks::leave_out(std::span<const Family> families, const Twins& twins, bool feeding) {
  // A neighbour of more than half the width is a cable in two pieces: worth showing in a trace.
  std::vector<std::uint8_t> stays = pinned_;
  for_each_pair(families, twins, feeding, [&](LinkId link, LinkId neighbour) {
    const Pair pair{link, neighbour};
    if (stays[index(link)] == 0 && !is_wider(link, {&pair, 1}, 2)) stays[index(link)] = 1;
  });
  std::vector<Pair> pairs;
  for_each_pair(families, twins, feeding, [&](LinkId link, LinkId neighbour) {
    if (stays[index(link)] == 0) pairs.emplace_back(link, neighbour);
  });
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (std::size_t from = 0, to = 0; from < pairs.size(); from = to) {
    while (to < pairs.size() && pairs[to].first == pairs[from].first) ++to;
    decide(std::span(pairs).subspan(from, to - from));
  }
}

// Returns whether the link is at least as wide.
bool ImpliedLinks::is_wider(LinkId link, std::span<const Pair> others, double more) {
  double sum = 0;
  for (const auto& [self, other] : others) sum += more * capacity(other);
  const bool wider = sum <= capacity(link);
  if (machinery_.sort) note(link, others, more, wider);
  return wider;
}

// Most are asked for again and again.
void ImpliedLinks::note(LinkId link, std::span<const Pair> others, double more, bool wider) {
  sorts_.assign({machinery_.sort(link), more == 1 ? 1u : 0u});
  for (const auto& [self, other] : others) sorts_.push_back(machinery_.sort(other));
  std::vector<std::uint32_t>& lately =
      lately_[(sorts_.front() * 31 + sorts_.back()) % lately_.size()];
  if (sorts_ == lately) return;
  lately = sorts_;
  FoldedBy::Width& known = widths_[sorts_];
  if (!known.others.empty()) return;
  known = {.link = link, .others = {}, .more = more, .wider = wider};
  known.others.reserve(others.size());
  for (const auto& [self, other] : others) known.others.push_back(other);
}

std::vector<FoldedBy::Width> ImpliedLinks::take_widths() {
  std::vector<FoldedBy::Width> list;
  list.reserve(widths_.size());
  for (auto& [sorts, width] : widths_) list.push_back(std::move(width));
  return list;
}

void ImpliedLinks::decide(std::span<const Pair> neighbours) {
  const LinkId link = neighbours.front().first;
  if (pinned_[index(link)] != 0 || implied_[index(link)] != 0) return;
  for (const auto& [self, neighbour] : neighbours)
    if (implied_[index(neighbour)] != 0) return;
  if (!is_wider(link, neighbours, 1)) return;
  implied_[index(link)] = 1;
  for (const auto& [self, neighbour] : neighbours) pinned_[index(neighbour)] = 1;
}

}  // namespace stepsim
