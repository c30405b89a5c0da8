// The form is that of torch/csrc/cuda/memory_snapshot.cpp of github.com/pytorch/pytorch @0006736.
#include "scenarios/foreign/logs/memory_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "sim/base/config.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_devices = 1024;
constexpr std::size_t most_letters = 300;  // of a frame's file or name; rules look at its end

struct Action {
  std::string_view name;
  SnapshotEvent::What what;
};
using What = SnapshotEvent::What;
// Others change nothing: what was asked to be given back is not there any more for the program.
constexpr std::array actions{
    Action{"alloc", What::taken},
    Action{"free_requested", What::given},
    Action{"segment_alloc", What::segment_taken},
    Action{"segment_map", What::segment_taken},
    Action{"segment_free", What::segment_given},
    Action{"segment_unmap", What::segment_given},
    Action{"oom", What::out_of_memory},
};

class SnapshotReader {
 public:
  using Id = Pickle::Id;
  using Kind = Pickle::Kind;

  explicit SnapshotReader(const std::string& file) : file_(file) {
    snapshot_.pickle = read_pickle(read_file(file), file);
    snapshot_.stacks.emplace_back();
    seen_.resize(pickle().size());
  }

  MemorySnapshot read() {
    const Id root = pickle().root();
    if (pickle().kind(root) != Kind::dict || !pickle().find(root, "segments") ||
        !pickle().find(root, "device_traces"))
      refuse(root,
             "expected a memory snapshot of PyTorch, a dictionary with \"segments\" and "
             "\"device_traces\": torch.cuda.memory._dump_snapshot writes one");
    const auto traces = list(root, "device_traces");
    for (std::size_t i = 0; i < traces.size(); ++i) {
      if (pickle().kind(traces[i]) != Kind::list)
        refuse(traces[i], fmt::format("expected a list of what a device recorded, found {}",
                                      to_text(pickle().kind(traces[i]))));
      device(traces[i], i);
      for (const Id entry : pickle().items(traces[i])) read_event(entry, i);
    }
    for (const Id segment : list(root, "segments")) read_segment(segment);
    return std::move(snapshot_);
  }

 private:
  const Pickle& pickle() const { return snapshot_.pickle; }

  [[noreturn]] void refuse(Id at, const std::string& why) const {
    throw UserError({{file_, 0, fmt::format("byte {}", pickle().offset(at)), why}});
  }
  // A value that a short file says a million times over would be read a million times.
  void enter(Id dict, std::string_view what) {
    if (pickle().kind(dict) != Kind::dict)
      refuse(dict, fmt::format("expected {}, a dictionary, found {}", what,
                               to_text(pickle().kind(dict))));
    if (seen_[static_cast<std::size_t>(dict)]) refuse(dict, fmt::format("{} is there twice", what));
    seen_[static_cast<std::size_t>(dict)] = true;
  }
  Id value(Id dict, std::string_view key, std::initializer_list<Kind> kinds) const {
    const auto found = pickle().find(dict, key);
    if (!found)
      refuse(dict, fmt::format("\"{}\" is missing: expected {}", key, to_text(*kinds.begin())));
    for (const Kind kind : kinds)
      if (pickle().kind(*found) == kind) return *found;
    refuse(*found, fmt::format("{}: expected {}, found {}", key, to_text(*kinds.begin()),
                               to_text(pickle().kind(*found))));
  }
  std::span<const Id> list(Id dict, std::string_view key) const {
    return pickle().items(value(dict, key, {Kind::list, Kind::tuple}));
  }
  std::string_view text(Id dict, std::string_view key) const {
    return pickle().text(value(dict, key, {Kind::text}));
  }
  std::int64_t whole(Id dict, std::string_view key) const {
    return pickle().whole(value(dict, key, {Kind::whole}));
  }
  double bytes(Id dict, std::string_view key) const {
    const Id found = value(dict, key, {Kind::whole});
    if (pickle().whole(found) < 0)
      refuse(found,
             fmt::format("{}: expected 0 or more bytes, found {}", key, pickle().whole(found)));
    return pickle().number(found);
  }

  DeviceSnapshot& device(Id at, std::size_t number) {
    if (number >= most_devices)
      refuse(at, fmt::format("expected a device below {}, found {}", most_devices, number));
    if (number >= snapshot_.devices.size()) snapshot_.devices.resize(number + 1);
    return snapshot_.devices[number];
  }

  void read_event(Id entry, std::size_t number) {
    enter(entry, "an entry of a trace");
    const std::string_view name = text(entry, "action");
    for (const Action& action : actions) {
      if (action.name != name) continue;
      const bool out = action.what == What::out_of_memory;
      device(entry, number)
          .events.push_back({.what = action.what,
                             .address = out ? 0 : whole(entry, "addr"),
                             .bytes = bytes(entry, "size"),
                             .stack = stack_of(entry)});
    }
  }
  void read_segment(Id segment) {
    enter(segment, "a segment");
    const auto number = pickle().find(segment, "device") ? whole(segment, "device") : 0;
    DeviceSnapshot& own = device(segment, static_cast<std::size_t>(number));
    own.reserved += bytes(segment, "total_size");
    std::int64_t address = whole(segment, "address");
    for (const Id block : list(segment, "blocks")) {
      enter(block, "a block");
      const double size = bytes(block, "size");
      if (text(block, "state") == "active_allocated")
        own.live.push_back({.address = address,
                            .bytes = pickle().find(block, "requested_size")
                                         ? bytes(block, "requested_size")
                                         : size,
                            .stack = stack_of(block)});
      address = static_cast<std::int64_t>(static_cast<std::uint64_t>(address) +
                                          static_cast<std::uint64_t>(size));
    }
  }

  // Many entries have the same list of frames, which is read once.
  std::size_t stack_of(Id dict) {
    if (!pickle().find(dict, "frames")) return 0;
    const Id frames = value(dict, "frames", {Kind::list, Kind::tuple});
    if (pickle().items(frames).empty()) return 0;
    const auto [place, is_new] = stacks_.emplace(frames, snapshot_.stacks.size());
    if (is_new) {
      std::vector<StackFrame> stack;
      for (const Id frame : pickle().items(frames)) stack.push_back(frame_of(frame));
      snapshot_.stacks.push_back(std::move(stack));
    }
    return place->second;
  }
  const StackFrame& frame_of(Id dict) {
    const auto [place, is_new] = frames_.try_emplace(dict);
    if (!is_new) return place->second;
    if (pickle().kind(dict) != Kind::dict)
      refuse(dict,
             fmt::format("expected a frame, a dictionary, found {}", to_text(pickle().kind(dict))));
    const std::string_view file = text(dict, "filename");
    place->second = {.name = text(dict, "name").substr(0, most_letters),
                     .file = file.substr(file.size() - std::min(file.size(), most_letters)),
                     .line = whole(dict, "line")};
    return place->second;
  }

  const std::string& file_;
  MemorySnapshot snapshot_;
  std::vector<bool> seen_;
  std::unordered_map<Id, std::size_t> stacks_;  // looked up, never iterated
  std::unordered_map<Id, StackFrame> frames_;   // the same
};

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

MemorySnapshot load_memory_snapshot(const std::string& path) {
  return SnapshotReader(path).read();
}

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
