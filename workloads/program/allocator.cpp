#include "workloads/program/allocator.hpp"

#include <algorithm>
#include <numeric>

namespace stepsim {

std::size_t stream_of(const AllocatingStreams& streams, std::string_view held) {
  const auto place = std::find(held_names.begin(), held_names.end(), held);
  return place == held_names.end() ? 0
                                   : streams[static_cast<std::size_t>(place - held_names.begin())];
}

double Allocator::mapped() const {
  return std::accumulate(mapped_.begin(), mapped_.end(), 0.0);
}

Allocator::Remapped Allocator::take(Held held, double bytes) {
  const std::size_t stream = stream_of(held);
  live_[stream] += bytes;
  const double more = live_[stream] - mapped_[stream];
  if (more <= 0) return {};
  Remapped change{.mapped = more};
  const double used = std::accumulate(live_.begin(), live_.end(), 0.0);
  overflowed_ = overflowed_ || used > room_;
  if (mapped() + more > room_ && !overflowed_) {
    const double before = mapped();
    for (std::size_t i = 0; i < streams; ++i)
      mapped_[i] = std::min(mapped_[i], i == stream ? live_[i] - bytes : live_[i]);
    change.returned = before - mapped();
    change.mapped = live_[stream] - mapped_[stream];
    returned_ = returned_ || change.returned > 0;
  }
  mapped_[stream] = live_[stream];
  return change;
}

}  // namespace stepsim
