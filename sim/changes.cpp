#include "sim/changes.hpp"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

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

}  // namespace stepsim
