// A footprint is what a scenario needs in device and host memory, and the first request that would
// fail.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "analysis/breakdown.hpp"
#include "analysis/memory_timeline.hpp"
#include "scenarios/scenario.hpp"
#include "workloads/step/step.hpp"

namespace stepsim {

// A run fits if at least nine in ten such runs do, and does not if fewer than half of them do; what
// is between is tight.
enum class Fit : std::uint8_t { fits, tight, oom };
std::string_view to_text(Fit fit);
inline constexpr double fits_from = 0.9, tight_from = 0.5;

// A figure with what it is when the constants behind it are at their better and worse ends.
struct Spread {
  double value = 0, low = 0, high = 0;
};

struct Footprint {
  MemoryReading device;    // set-up and step; its limit leaves room for slack and libraries
  double states = 0;       // bytes: parameters, gradients, master copy, optimizer
  double slack = 0;        // bytes that the allocator holds beyond what is used
  double library = 0;      // bytes that libraries take past it
  double reserved = 0;     // bytes of its segments after two steps, at the most; 0: not asked for
  Spread layout{1, 1, 1};  // of that, as a share: what the allocator may make of the same requests
  double mapped = 0;       // bytes when an update begins, where a step gives memory back; else 0
  double context = 0;      // bytes of the framework's context, outside the capacity
  double capacity = 0;     // bytes a framework can allocate
  Spread margin;           // bytes left over, or missing
  double scatter = 0;      // of what runs need around what is predicted: scale of its logarithm
  MemoryReading host;      // of the node that has most: pinned and pageable together
  double pinned = 0;       // bytes of that, between steps
  double pageable = 0;
  double disk = 0;  // bytes on a node's drives
  double host_capacity = 0;
  double disk_capacity = 0;  // 0: the node's file does not say
  struct OfStage {
    std::size_t number = 0, count = 0;   // none: all ranks hold the same
  } stage;                               // of a pipeline
  double first_stage = 0;                // bytes allocated on that one; 0: there are none
  std::vector<std::string> uncounted{};  // keys of another program's file that need more

  double needed() const { return device.peak.bytes + slack + library; }
  // Returns what the device's own tool shows after two steps, where `reserved` was asked for.
  // Segments that are free are given back when memory is short, so they do not decide what fits.
  double shown() const { return shown_with(layout.value); }
  // The same, were it another share of what is laid out.
  double shown_with(double share) const {
    const double segments = mapped > 0 ? mapped : reserved * share / layout.value;
    return std::min(segments + library, capacity) + context;
  }
  bool host_fits() const { return host.peak.bytes <= host_capacity; }
  bool drives_fit() const { return disk_capacity == 0 || disk <= disk_capacity; }
  // Returns the share of such runs that fit on the GPU, on the host, and on what has least room.
  double chance_on_device() const;
  double chance_on_host() const;
  double chance() const;
  Fit fit() const;
};

// Returns the timeline from nothing to what is there when the first step begins, all of it at 0 s.
Timeline setup_timeline(const RankPart& rank);

// Returns the footprint of a step whose timeline somebody else found, in time or in program order.
Footprint footprint_of(const Scenario& scenario, const Resident& resident, const Timeline& step);

// Returns whether the setup fits: without it no step fits either. Nothing of a step is written to
// know that.
bool setup_fits(const Scenario& scenario);

// Returns the footprint of a step in program order, as if nothing ran ahead.
Footprint footprint(const Scenario& scenario);

// Returns the largest micro-batch that has such a chance to fit; 0: not even one row has.
std::int64_t largest_micro_batch(const Scenario& scenario, double chance);

// Returns the footprint of the stage with least memory left; that of all ranks where all do the
// same. `step` gives the timeline of a replayed rank.
Footprint fullest_footprint(const Scenario& scenario, const StepProgram& program,
                            const std::function<Timeline(Rank)>& step);

// Returns the mean of all stages, so that rows still add up to the step.
Breakdown mean_breakdown(const std::vector<StepStage>& stages, const OpGraph& graph,
                         const Trace& trace);

}  // namespace stepsim
