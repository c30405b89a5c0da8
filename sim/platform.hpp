// A platform is what operations run on: devices that compute and links that carry bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

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

enum class LinkId : std::uint32_t {};
using Rank = std::uint32_t;  // rank r computes on device r

constexpr std::size_t index(LinkId id) {
  return static_cast<std::size_t>(id);
}

struct Link {
  std::string name{};
  BytesPerSecond capacity{};  // one direction; whoever uses it at a moment shares it max-min
  // One simulated flow on this link stands for `weight` equal flows after folding, so each of them
  // is served as if the link had capacity / weight.
  double weight = 1;
  std::vector<Change> changes{};  // of its capacity, while a program runs

  friend bool operator==(const Link&, const Link&) = default;
};

struct Device {
  std::string name{};
  double speed = 1;               // below 1: a straggler
  double compute_share = 1;       // rate that compute keeps while a collective runs here
  double collective_share = 1;    // capacity that the engines keep while compute runs here
  std::vector<LinkId> engines{};  // links through which this device drives its collectives
  std::vector<Change> changes{};  // of its speed, while a program runs

  friend bool operator==(const Device&, const Device&) = default;
};

struct Platform {
  std::vector<Link> links;
  std::vector<Device> devices;
  // s: a device or link is lost then, and with it the program; whatever runs ends there.
  std::optional<double> lost_at{};
};

// Throws std::logic_error on what no input file may cause: a capacity of zero, an unknown engine.
void validate(const Platform& platform);

// Transfers take `factor` times as long on this platform; OpGraph::stretch does it for all else of
// a program.
void stretch(Platform& platform, double factor);

}  // namespace stepsim
