// This tells what a request of a real run's allocator was for by who asked for it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

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

}  // namespace stepsim
