#include "sim/engine/simgrid/power_states.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace stepsim {
namespace {

// Computed says what a program computes on one device.
struct Computed {
  std::set<Stream> streams{};
  std::set<int> streaming{};
};

std::vector<Computed> computed_on(const OpGraph& graph, std::size_t devices) {
  std::vector<Computed> all(devices);
  for (const Op& op : graph.ops()) {
    if (op.kind != OpKind::compute) continue;
    all[op.rank].streams.insert(op.stream);
    all[op.rank].streaming.insert(op.streaming);
  }
  return all;
}

// Returns all sums of one of `sums` and one of `more`.
std::set<int> sums_with(const std::set<int>& sums, const std::set<int>& more) {
  std::set<int> all;
  for (const int sum : sums)
    for (const int each : more) all.insert(sum + each);
  return all;
}

}  // namespace

std::size_t PowerStates::place(const DeviceWork& work) const {
  const auto mix = std::ranges::find(mixes_, Mix{work.computations, work.streaming});
  if (mix == mixes_.end())
    throw std::logic_error(fmt::format("{} computations at once on one device, {} streaming parts",
                                       work.computations, work.streaming));
  return 2 * static_cast<std::size_t>(mix - mixes_.begin()) + (work.collectives > 0 ? 1 : 0);
}

std::string PowerStates::watts(const RankPower& power, std::size_t speeds) const {
  std::vector<std::string> states;
  for (std::size_t speed = 0; speed < speeds; ++speed)
    for (const Mix& mix : mixes_)
      for (const bool collectives : {false, true}) {
        // A device that a change slows has a load below 1 and draws as much as at full speed.
        const double under_load = power.of_device(mix.computations, mix.streaming, collectives);
        states.push_back(
            fmt::format("{0}:{1}:{1}", power.of_device(0, 0, collectives), under_load));
      }
  return fmt::format("{}", fmt::join(states, ","));
}

std::vector<PowerStates> power_states(const OpGraph& graph, std::size_t devices) {
  std::vector<PowerStates> all(devices);
  const std::vector<Computed> computed = computed_on(graph, devices);
  for (std::size_t device = 0; device < devices; ++device) {
    std::set<int> sums{0};
    for (int count = 1; count <= static_cast<int>(computed[device].streams.size()); ++count) {
      sums = sums_with(sums, computed[device].streaming);
      for (const int sum : sums) all[device].mixes_.push_back({count, sum});
    }
  }
  return all;
}

}  // namespace stepsim
