// What a scenario needs in device memory, without timing, and what would make it fit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/memory_timeline.hpp"
#include "scenarios/scenario.hpp"

namespace stepsim {

enum class Fit : std::uint8_t { fits, tight, oom };
std::string_view to_text(Fit fit);

struct Footprint {
  double resident = 0;  // bytes: parameters, gradients, optimizer
  MemoryPeak peak;      // on top of it
  double slack = 0;     // bytes that the allocator holds beyond what is used
  double capacity = 0;  // bytes a framework can allocate

  double needed() const { return resident + peak.bytes + slack; }
  Fit fit() const;
};

// From a peak that somebody else found: in time, or in program order.
Footprint footprint_of(const Scenario& scenario, double resident, MemoryPeak peak);

// In program order, as if nothing ran ahead.
Footprint footprint(const Scenario& scenario);

// A change of the scenario, with what it then needs.
struct Remedy {
  std::string change;  // "job.micro_batch: 4"
  Footprint footprint;
};

// Each computed on the changed scenario: the largest micro-batch that fits, the next ways to shard,
// offload, a smaller optimizer. Only those that fit.
std::vector<Remedy> remedies(const Scenario& scenario);

}  // namespace stepsim
