// Counts what each link carries and how long it is busy.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

class LinkMeter {
 public:
  explicit LinkMeter(std::span<const Link> links)
      : links_(links), use_(links.size()), active_(links.size(), 0), since_(links.size(), 0) {}

  // One flow of an operation of `bytes` starts at time `now`.
  void enter(const Flow& flow, Bytes bytes, double now) {
    for (const LinkId id : flow.path) {
      use_[index(id)].bytes += bytes.value * flow.share * links_[index(id)].weight;
      if (active_[index(id)]++ == 0) since_[index(id)] = now;
    }
  }
  void leave(const Flow& flow, double now) {
    for (const LinkId id : flow.path)
      if (--active_[index(id)] == 0) use_[index(id)].busy.value += now - since_[index(id)];
  }

  // Counts every link that a flow still crosses as busy up to now.
  void close(double now) {
    for (std::size_t i = 0; i < active_.size(); ++i)
      if (active_[i] > 0) use_[i].busy.value += now - since_[i];
  }

  std::vector<LinkUse> take() { return std::move(use_); }

 private:
  std::span<const Link> links_;
  std::vector<LinkUse> use_;
  std::vector<std::uint32_t> active_;  // flows on it now, each as often as it crosses
  std::vector<double> since_;          // when the first of them came
};

}  // namespace stepsim
