// Links that all flows cross alike are one constraint: only the narrowest of them counts. A route
// through a node and its fabric has up to a dozen links, and mostly three such series.
#pragma once

#include <span>
#include <vector>

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

class Series {
 public:
  // `apart`: every link is a series by itself, crossed or not, so that each can be looked at.
  Series(std::span<const Link> links, const OpGraph& graph, bool apart = false);

  // The link that stands for the series of this one. A link that no flow crosses has none.
  bool used(LinkId id) const { return first_[index(id)] != unused; }
  LinkId first(LinkId id) const { return first_[index(id)]; }
  // Returns what the series of a link carries for one flow, in B/s.
  double width(LinkId id) const;
  // These give the link this share of its capacity from now on: scale() beside compute, change() by
  // a change that the platform foresees.
  void scale(LinkId id, double share) { share_[index(id)] = share; }
  void change(LinkId id, double share) { changed_[index(id)] = share; }

 private:
  static constexpr LinkId unused{0xFFFFFFFF};

  std::span<const Link> links_;
  std::vector<LinkId> first_, next_;  // the members of a series as a chain in id order
  std::vector<double> share_, changed_;
};

}  // namespace stepsim
