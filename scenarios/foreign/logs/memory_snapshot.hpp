// A snapshot is what the allocator of a real run recorded of itself: PyTorch's, as
// torch.cuda.memory._dump_snapshot writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/foreign/logs/memory_frames.hpp"
#include "sim/base/pickle.hpp"

namespace stepsim {

struct SnapshotEvent {
  enum class What : std::uint8_t { taken, given, segment_taken, segment_given, out_of_memory } what;
  std::int64_t address = 0;
  double bytes = 0;       // as asked for
  std::size_t stack = 0;  // of those below
};
struct SnapshotBlock {
  std::int64_t address = 0;
  double bytes = 0;  // as asked for
  std::size_t stack = 0;
};
struct DeviceSnapshot {
  std::vector<SnapshotEvent> events;
  std::vector<SnapshotBlock> live;  // when it was taken
  double reserved = 0;              // bytes of its segments then
};

struct MemorySnapshot {
  Pickle pickle;                                // what the frames' words are part of
  std::vector<std::vector<StackFrame>> stacks;  // innermost first; the first one is empty
  std::vector<DeviceSnapshot> devices;
};

// Throws UserError with the byte of the file and what was expected there.
MemorySnapshot load_memory_snapshot(const std::string& path);

}  // namespace stepsim
