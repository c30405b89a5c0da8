// A platform is what operations run on: devices that compute and links that carry bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/changes.hpp"

namespace stepsim {

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

}  // namespace stepsim
