#include "scenarios/foreign/logs/memory_frames.hpp"

#include <algorithm>

#include "sim/base/config.hpp"
#include "sim/base/lists.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

std::vector<FrameRules::Pattern> patterns_in(const Table& table, std::string_view key) {
  return mapped(table.texts(key), [](const std::string& text) {
    const std::size_t colon = text.find(':');
    return colon == std::string::npos
               ? FrameRules::Pattern{text, ""}
               : FrameRules::Pattern{text.substr(0, colon), text.substr(colon + 1)};
  });
}

bool fits(const std::vector<FrameRules::Pattern>& patterns, std::span<const StackFrame> frames) {
  return std::ranges::any_of(patterns, [&](const FrameRules::Pattern& pattern) {
    return std::ranges::any_of(frames, [&](const StackFrame& frame) {
      return frame.file.find(pattern.file) != std::string_view::npos &&
             (pattern.name.empty() || frame.name == pattern.name);
    });
  });
}

// Returns whether the frames are a predicted step's own: the class, the operation, the phase, and a
// mechanism for a file.
bool is_own(std::span<const StackFrame> frames) {
  return !frames.empty() && frames.front().line == 0 &&
         frames.front().file.find_first_of("./<") == std::string_view::npos;
}

}  // namespace

std::optional<std::size_t> FrameRules::kind_of_class(std::string_view tensor_class) const {
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (holds(kinds[i].classes, tensor_class)) return i;
  return std::nullopt;
}

std::optional<std::size_t> FrameRules::kind_of(std::span<const StackFrame> frames) const {
  if (is_own(frames)) return kind_of_class(frames.front().name);
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (frames.empty() ? kinds[i].without_frames : fits(kinds[i].frames, frames)) return i;
  return std::nullopt;
}

std::string_view FrameRules::moment_of(std::span<const StackFrame> frames) const {
  if (is_own(frames))
    return frames.back().name.substr(0, frames.back().name.find(" of micro-batch "));
  if (frames.empty()) return "backward";
  for (const Moment& moment : moments)
    if (fits(moment.frames, frames)) return moment.name;
  return "other";
}

FrameRules frame_rules(const Catalogue& data) {
  const Document document = read_document(data.file("scenarios/foreign/logs/memory-frames.yaml"));
  const Table root = document.root();
  FrameRules rules;
  const Table moments = root.table("moments");
  for (const std::string& name : moments.keys())
    rules.moments.push_back({name, patterns_in(moments, name)});
  for (const Table& kind : root.tables("kinds"))
    rules.kinds.push_back({.name = kind.text("kind"),
                           .frames = patterns_in(kind, "frames"),
                           .classes = kind.texts("classes"),
                           .lasting = kind.flag_or("lasting", false),
                           .without_frames = kind.flag_or("without_frames", false)});
  document.finish();
  return rules;
}

}  // namespace stepsim
