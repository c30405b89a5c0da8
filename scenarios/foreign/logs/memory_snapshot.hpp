// A snapshot is what the allocator of a real run recorded of itself: PyTorch's, as
// torch.cuda.memory._dump_snapshot writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/pickle.hpp"

namespace stepsim {

// This tells what a request of a real run's allocator was for by who asked for it.
class Catalogue;

struct StackFrame {
  std::string_view name, file;
  std::int64_t line = 0;
};

struct FrameRules {
  struct Pattern {
    std::string file;  // part of its path; empty: any
    std::string name;  // empty: any
  };
  struct Moment {
    std::string name;  // "forward"
    std::vector<Pattern> frames;
  };
  struct Kind {
    std::string name;  // "activations"
    std::vector<Pattern> frames;
    std::vector<std::string> classes;  // that a prediction has of it
    bool lasting = false;              // it may be there from before a recording
    bool without_frames = false;       // what has no frames is of this kind
  };
  std::vector<Moment> moments;
  std::vector<Kind> kinds;

  // Returns the place of a kind; nothing where no frame tells.
  std::optional<std::size_t> kind_of(std::span<const StackFrame> frames) const;
  std::optional<std::size_t> kind_of_class(std::string_view tensor_class) const;
  std::string_view moment_of(std::span<const StackFrame> frames) const;
};

FrameRules frame_rules(const Catalogue& data);

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
