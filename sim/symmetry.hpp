// This finds ranks and links that nothing can tell apart, so that one of each may be simulated for
// all.
// Ranks, links, groups and flows are coloured until every member of a colour sees the same number
// of every other colour (an equitable partition). Max-min sharing is unique, so what looks the same
// evolves the same: a program played on the quotient takes exactly the time of the whole.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/traffic.hpp"

namespace stepsim {

// Groups that do the same thing at the same point of the program, one pattern each: every node's
// own all-gather, say. Between families nothing is assumed; they may overlap at will.
using Family = std::vector<Pattern>;

// The machinery is the whole machine, described only where it is used.
struct Machinery {
  Rank ranks = 0;
  std::size_t links = 0;
  std::function<BytesPerSecond(LinkId)> capacity;
  std::function<Link(LinkId)> link;
  std::function<Device(Rank)> device;
  // Links of one sort are equally wide, whatever the rates are. Empty: not known.
  std::function<std::uint32_t(LinkId)> sort;
  // Ranks of different kind are never folded together: stragglers, pipeline stages. Empty: equal.
  std::vector<std::uint64_t> kinds;
  // These links change while a program runs, so each is like no other.
  std::vector<LinkId> changing{};
  std::optional<double> lost_at{};  // s: see Platform
};

// FoldedBy keeps what folding rested on, so that it can be said of other rates whether they would
// fold the same.
struct FoldedBy {
  // The link is at least as wide as `more` times the others together, or not.
  struct Width {
    LinkId link;
    std::vector<LinkId> others;
    double more = 1;
    bool wider = false;
  };
  std::vector<std::vector<LinkId>> links;  // [class]: that which stands for it, one of each sort
  std::vector<Width> widths;
  bool pure = true;  // flows of one class are of one sort
};

struct Folded {
  Platform platform;             // one link per class, one device per lane
  std::vector<Family> families;  // one pattern per class of groups, ranks are lanes
  std::vector<std::vector<std::uint32_t>> group_class;  // [family][group] -> its pattern
  std::vector<Rank> lane_of;                            // [rank]
  std::vector<Rank> rank_of;                            // [lane]: the rank that stands for it
  std::vector<std::uint32_t> lane_sizes;                // [lane]: ranks it stands for
  std::optional<FoldedBy> by{};                         // where sorts of links are known
};

enum class Folding : std::uint8_t { automatic, off };

Folded fold(const Machinery& machinery, std::span<const Family> families, Folding folding);

}  // namespace stepsim
