#include "sim/platform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

// Returns how close two moments may be that count as one: they come out of sums in different
// orders.
double rounding(double time) {
  return 1e-12 * std::max(1.0, time);
}

// Returns the seconds since the change last began; nothing before it first does.
std::optional<double> since_begin(const Change& change, double time) {
  const double since = time - change.at;
  if (since < -rounding(time)) return std::nullopt;
  if (change.period <= 0) return std::max(0.0, since);
  const double periods = std::floor((since + rounding(time)) / change.period);
  return std::max(0.0, since - periods * change.period);
}

bool holds_at(const Change& change, double time) {
  const auto since = since_begin(change, time);
  return since && *since < change.length - rounding(time);
}

// Returns the moment at which the change next begins or ends.
std::optional<double> next_of(const Change& change, double time) {
  const auto since = since_begin(change, time);
  if (!since) return change.at;
  const double begin = time - *since;
  if (*since < change.length - rounding(time)) {
    if (std::isfinite(change.length)) return begin + change.length;
    return std::nullopt;
  }
  if (change.period <= 0) return std::nullopt;
  return begin + change.period;
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

double share_at(std::span<const Change> changes, double time) {
  double share = 1;
  for (const Change& change : changes)
    if (holds_at(change, time)) share *= change.share;
  return share;
}

double latency_at(std::span<const Change> changes, double time) {
  double latency = 0;
  for (const Change& change : changes)
    if (holds_at(change, time)) latency += change.latency;
  return latency;
}

bool adds_latency(std::span<const Change> changes) {
  return std::ranges::any_of(changes, [](const Change& change) { return change.latency > 0; });
}

std::optional<double> next_change(std::span<const Change> changes, double time) {
  std::optional<double> next;
  for (const Change& change : changes)
    if (const auto each = next_of(change, time); each && (!next || *each < *next)) next = each;
  return next;
}

void stretch(Platform& platform, double factor) {
  if (factor == 1) return;
  for (Link& link : platform.links) link.capacity = link.capacity / factor;
}

}  // namespace stepsim
