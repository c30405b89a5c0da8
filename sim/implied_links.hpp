// Links that no flow will ever be held up by.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/symmetry.hpp"
#include "sim/twins.hpp"

namespace stepsim {

// Links that can never be the bottleneck, because the links that feed them (or that they feed)
// carry less together than they do: the trunk of a non-blocking leaf. Max-min shares do not change
// when such a link is left out, and places that differ only by it become alike. Links that stand
// for this are kept in turn, so two links never excuse each other.
class ImpliedLinks {
 public:
  // Twins take the same ways, and are passed by.
  ImpliedLinks(const Machinery& machinery, std::span<const Family> families, const Twins& twins);
  bool operator[](LinkId id) const { return implied_[index(id)] != 0; }
  // Returns the comparisons of links' widths that decided something, once for all links of the same
  // sorts.
  std::vector<FoldedBy::Width> take_widths();

 private:
  using Pair = std::pair<LinkId, LinkId>;  // a link and its neighbour on a path

  double capacity(LinkId id);
  void leave_out(std::span<const Family> families, const Twins& twins, bool feeding);
  void decide(std::span<const Pair> neighbours);
  bool is_wider(LinkId link, std::span<const Pair> others, double more);
  void note(LinkId link, std::span<const Pair> others, double more, bool wider);

  const Machinery& machinery_;
  std::vector<std::uint8_t> implied_, pinned_;
  std::vector<double> capacity_;
  std::map<std::vector<std::uint32_t>, FoldedBy::Width> widths_;  // by sorts
  std::array<std::vector<std::uint32_t>, 64> lately_;             // some of these
  std::vector<std::uint32_t> sorts_;                              // scratch
};

}  // namespace stepsim
