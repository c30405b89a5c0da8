// The critical path is the operations that a step waited for, one after the other, and the same as
// a few lines to read.
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/trace.hpp"

namespace stepsim {

// Returns the path from the start to the last finish: each operation started when the one before it
// was done, so their times add up to the step's.
std::vector<OpId> critical_path(const OpGraph& graph, const Trace& trace);

// A part is a stretch of the path: one pass over some layers. Recomputation belongs to the backward
// pass.
struct PathPart {
  Phase pass = Phase::other;
  std::int16_t first_layer = -1, last_layer = -1;  // in the order of the pass; -1: outside of them
  std::int32_t first_micro_batch = -1, last_micro_batch = -1;
  Seconds seconds;
  std::vector<std::pair<Cause, Seconds>> causes;  // largest first
  std::string name{};                             // where no pass says it: "training"

  friend bool operator==(const PathPart&, const PathPart&) = default;
  static auto fields(auto& self) {
    return std::tie(self.pass, self.first_layer, self.last_layer, self.first_micro_batch,
                    self.last_micro_batch, self.seconds, self.causes, self.name);
  }
};

// Layer by layer, as the path goes. What comes before and behind the `layers` is outside of them.
std::vector<PathPart> path_parts(const OpGraph& graph, const Trace& trace, std::int64_t layers);
// Neighbouring layers that wait mostly for the same are one part, and so are layers that take turns
// and micro-batches that go alike.
std::vector<PathPart> folded(const std::vector<PathPart>& parts);

// Writes "backward, layers 47 to 0" or "optimizer"; with its micro-batches where there are several.
std::string title_of(const PathPart& part);

// The first stretch in which two steps differ by more than `least`, or do not go the same way; the
// number of parts where they do not.
std::size_t first_difference(const std::vector<PathPart>& a, const std::vector<PathPart>& b,
                             Seconds least);

}  // namespace stepsim
