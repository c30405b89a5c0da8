// This compares what a real run held, as its allocator recorded it, with what is predicted for it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/predict/footprint.hpp"
#include "scenarios/foreign/logs/memory_snapshot.hpp"

namespace stepsim {

// The same line of a program made these requests.
struct RequestsOfFrame {
  std::string frame;  // "modeling_llama.py:172 forward"
  std::string kind;
  double bytes = 0;
  std::size_t requests = 0;
};

// This is the moment when the fullest device of the snapshot held most.
struct RealMemory {
  std::size_t device = 0, devices = 0;
  std::size_t events = 0;          // recorded; 0: only the state at the end is known
  double peak = 0;                 // bytes that were asked for
  double reserved_at_peak = 0;     // bytes of segments then
  double reserved = 0;             // at the most
  double before = 0;               // bytes at the peak from before the recording, without frames
  double unknown = 0;              // bytes at the peak whose frames say nothing
  bool from_start = false;         // nothing was there before the recording
  std::string moment{};            // of the request that made the peak
  std::optional<double> failed{};  // bytes of the first request for which there was no room
  std::vector<double> kinds;       // bytes at the peak, one for each of the rules' kinds
  std::vector<RequestsOfFrame> frames{};  // at the peak, largest first
};
RealMemory real_memory(const MemorySnapshot& snapshot, const FrameRules& rules);

struct ComparedKind {
  std::string name;
  double real = 0, predicted = 0;                         // bytes at either's peak
  std::vector<std::pair<std::string, double>> classes{};  // of the prediction, largest first

  double error() const { return predicted / real - 1; }
  double off() const { return predicted - real; }
};
struct MemoryComparison {
  RealMemory real;
  MemoryReading predicted;  // with the set-up where the recording has it
  double predicted_reserved = 0;
  std::vector<ComparedKind> kinds;  // those that either has

  double error() const { return predicted.peak.bytes / real.peak - 1; }
};
// Compares kind by kind. Memory that is there from before the recording has no frames: then it is
// one with all kinds that last, and with what of other kinds is there between steps.
MemoryComparison compare_memory(const Scenario& scenario, const Footprint& footprint,
                                RealMemory real, const FrameRules& rules);

}  // namespace stepsim
