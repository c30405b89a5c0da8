#include "sim/platform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>

namespace stepsim {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

bool is_share(double value) {
  return value > 0 && value <= 1;
}

void require_sound(const std::string& name, std::span<const Change> changes) {
  for (const Change& change : changes)
    require(change.at >= 0 && change.length > 0 && change.share > 0 && change.latency >= 0 &&
                (change.period == 0 || change.period > change.length),
            fmt::format("{} changes in a way that makes no sense", name));
}

}  // namespace

void validate(const Platform& platform) {
  for (const Link& link : platform.links) {
    require(std::isfinite(link.capacity.value) && link.capacity.value > 0,
            fmt::format("link {} has no capacity", link.name));
    require(std::isfinite(link.weight) && link.weight > 0,
            fmt::format("link {} has no weight", link.name));
    require_sound(link.name, link.changes);
  }
  for (const Device& device : platform.devices) {
    require(std::isfinite(device.speed) && device.speed > 0,
            fmt::format("device {} has no speed", device.name));
    require(is_share(device.compute_share) && is_share(device.collective_share),
            fmt::format("device {}: shares lie in (0, 1]", device.name));
    require_sound(device.name, device.changes);
    for (const LinkId engine : device.engines)
      require(index(engine) < platform.links.size(),
              fmt::format("device {} names an unknown engine link", device.name));
  }
}

}  // namespace stepsim
