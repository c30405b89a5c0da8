#include "sim/twins.hpp"

#include <array>
#include <numeric>

#include "sim/exchange_kinds.hpp"

namespace stepsim {
namespace {

// Counterparts pair numbers of one side with numbers of the other: each with one, and no two with
// the same.
template <std::size_t N>
class Counterparts {
 public:
  using Numbers = std::array<double, N>;

  bool go_together(const Numbers& one, const Numbers& other) {
    if (last_ < pairs_.size() && pairs_[last_].one == one) return pairs_[last_].other == other;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_[i].one != one && pairs_[i].other != other) continue;
      last_ = i;
      return pairs_[i].one == one && pairs_[i].other == other;
    }
    last_ = pairs_.size();
    pairs_.push_back({one, other});
    return pairs_.size() <= most;
  }

 private:
  // More would take long to look through.
  static constexpr std::size_t most = 64;

  struct Pair {
    Numbers one, other;
  };
  std::vector<Pair> pairs_;
  std::size_t last_ = 0;
};

bool same_ways(const Exchange& one, const Exchange& other) {
  return one.ends == other.ends;
}

class FamilyComparison {
 public:
  bool alike(const Family& one, const Family& other) {
    if (one.size() != other.size()) return false;
    for (std::size_t g = 0; g < one.size(); ++g)
      if (!alike(one[g], other[g])) return false;
    return true;
  }

 private:
  bool alike(const Pattern& one, const Pattern& other) {
    if (one.rounds.size() != other.rounds.size() || one.members != other.members) return false;
    for (std::size_t r = 0; r < one.rounds.size(); ++r)
      if (!alike(one.rounds[r], other.rounds[r])) return false;
    return true;
  }

  bool alike(const Round& one, const Round& other) {
    if (one.flows.size() != other.flows.size()) return false;
    if (!latencies_.go_together({one.latency.value}, {other.latency.value})) return false;
    if (!same_ways(one.exchange, other.exchange)) return false;
    if (!one.exchange.ends.empty() &&
        !exchanges_.go_together({one.exchange.wire, one.exchange.share},
                                {other.exchange.wire, other.exchange.share}))
      return false;
    for (std::size_t i = 0; i < one.flows.size(); ++i)
      if (!alike(one.flows[i], other.flows[i])) return false;
    return true;
  }

  bool alike(const Flow& one, const Flow& other) {
    return one.source == other.source && one.target == other.target &&
           amounts_.go_together({one.wire, one.share}, {other.wire, other.share}) &&
           flows_.go_together({one.wire, one.share, one.rate_cap},
                              {other.wire, other.share, other.rate_cap}) &&
           one.path == other.path;
  }

  Counterparts<1> latencies_;
  Counterparts<2> exchanges_, amounts_;
  Counterparts<3> flows_;
};

}  // namespace

Twins no_twins(std::span<const Family> families) {
  Twins twins(families.size());
  std::iota(twins.begin(), twins.end(), std::uint32_t{0});
  return twins;
}

Twins find_twins(std::span<const Family> families) {
  Twins twins = no_twins(families);
  for (std::uint32_t family = 0; family < families.size(); ++family)
    for (std::uint32_t before = 0; before < family && !is_twin(twins, family); ++before)
      if (!is_twin(twins, before) && FamilyComparison().alike(families[before], families[family]))
        twins[family] = before;
  return twins;
}

}  // namespace stepsim
