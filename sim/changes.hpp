// Bandwidth and speed may change while a program runs: a link slows, or a GPU throttles.
#pragma once

#include <limits>
#include <optional>
#include <span>

namespace stepsim {

// A change begins at `at` and holds for `length`, and again after each period; meanwhile only
// `share` of the bandwidth or speed is there.
struct Change {
  double at = 0;                                            // s
  double length = std::numeric_limits<double>::infinity();  // s
  double period = 0;                                        // s, longer than `length`; 0: once
  double share = 1;                                         // of bandwidth or speed; above 0
  double latency = 0;                                       // s more for what crosses the link

  friend bool operator==(const Change&, const Change&) = default;
};

// These return the share and the latency at a moment: the shares of changes that hold at once
// multiply, and their latencies add up. At the moment of a change what comes after it holds.
double share_at(std::span<const Change> changes, double time);
double latency_at(std::span<const Change> changes, double time);
bool adds_latency(std::span<const Change> changes);
// Returns the first moment after `time` at which a change begins or ends; nothing where none does.
std::optional<double> next_change(std::span<const Change> changes, double time);

}  // namespace stepsim
