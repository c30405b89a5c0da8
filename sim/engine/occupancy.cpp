#include "sim/engine/occupancy.hpp"

#include <algorithm>

namespace stepsim {

Occupancy::Occupancy(const OpGraph& graph, std::size_t devices) {
  for (const Pattern& pattern : graph.patterns())
    if (pattern.occupancy > 0) levels_.push_back(pattern.occupancy);
  std::ranges::sort(levels_);
  levels_.erase(std::unique(levels_.begin(), levels_.end()), levels_.end());
  running_.assign(devices * levels_.size(), 0);
}

std::vector<double> Occupancy::rates(const Device& device, double full) const {
  std::vector<double> rates{full};
  for (const double level : levels_)
    rates.push_back(full * (1 - level * (1 - device.compute_share)));
  return rates;
}

void Occupancy::change(Rank rank, double occupancy, int by) {
  const auto level = std::lower_bound(levels_.begin(), levels_.end(), occupancy) - levels_.begin();
  running_[rank * levels_.size() + static_cast<std::size_t>(level)] +=
      static_cast<std::uint32_t>(by);
}

std::size_t Occupancy::state(Rank rank) const {
  for (std::size_t level = levels_.size(); level > 0; --level)
    if (running_[rank * levels_.size() + level - 1] > 0) return level;
  return 0;
}

}  // namespace stepsim
