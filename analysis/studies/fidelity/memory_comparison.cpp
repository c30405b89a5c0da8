#include "analysis/studies/fidelity/memory_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "analysis/studies/predict/rank_memory.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

using What = SnapshotEvent::What;

// One that is there at some moment.
struct Living {
  double bytes = 0;
  std::size_t stack = 0;
  bool from_before = false;  // the recording
};

// Bytes that a recording begins with, so that it ends with those of its last moment.
double first_of(const DeviceSnapshot& device, double last, What adds, What takes) {
  for (const SnapshotEvent& event : device.events) {
    if (event.what == adds) last -= event.bytes;
    if (event.what == takes) last += event.bytes;
  }
  return std::max(0.0, last);
}

struct Highest {
  double held = 0, reserved_then = 0, reserved = 0;
  double first = 0;       // bytes that were there before the recording
  std::size_t event = 0;  // behind how many of them
};

Highest highest_of(const DeviceSnapshot& device) {
  double held = 0;
  for (const SnapshotBlock& block : device.live) held += block.bytes;
  held = first_of(device, held, What::taken, What::given);
  double reserved = first_of(device, device.reserved, What::segment_taken, What::segment_given);
  Highest highest{.held = held, .reserved_then = reserved, .reserved = reserved, .first = held};
  for (std::size_t i = 0; i < device.events.size(); ++i) {
    const SnapshotEvent& event = device.events[i];
    if (event.what == What::taken) held += event.bytes;
    if (event.what == What::given) held -= event.bytes;
    if (event.what == What::segment_taken) reserved += event.bytes;
    if (event.what == What::segment_given) reserved -= event.bytes;
    highest.reserved = std::max(highest.reserved, reserved);
    if (held > highest.held) {
      highest.held = held;
      highest.reserved_then = reserved;
      highest.event = i + 1;
    }
  }
  return highest;
}

// Returns what lives at the moment, by address. A block that is given back and was never taken was
// there before, and so was what is left at the end.
std::map<std::int64_t, Living> living_at(const DeviceSnapshot& device, std::size_t moment) {
  std::map<std::int64_t, Living> before, now;
  std::unordered_map<std::int64_t, bool> taken;  // looked up, never iterated
  for (const SnapshotEvent& event : device.events) {
    if (event.what == What::taken) taken[event.address] = true;
    if (event.what == What::given && !std::exchange(taken[event.address], false))
      before.try_emplace(event.address, Living{event.bytes, 0, true});
  }
  for (const SnapshotBlock& block : device.live)
    if (!taken[block.address])
      before.try_emplace(block.address, Living{block.bytes, block.stack, block.stack == 0});
  now = std::move(before);
  for (const SnapshotEvent& event : std::span(device.events).first(moment)) {
    if (event.what == What::taken) now[event.address] = {event.bytes, event.stack, false};
    if (event.what == What::given) now.erase(event.address);
  }
  return now;
}

// The innermost frame of the program itself, rather than of the library that asks for it.
std::string shown(const std::vector<StackFrame>& stack) {
  const auto own = std::ranges::find_if(stack, [](const StackFrame& frame) {
    return frame.file.find("/torch/") == std::string_view::npos && frame.file != "??";
  });
  const StackFrame& frame = own == stack.end() ? stack.front() : *own;
  const std::string_view file = frame.file.substr(frame.file.rfind('/') + 1);
  if (frame.line == 0) return on_one_line(fmt::format("{} {}", file, frame.name));
  return on_one_line(fmt::format("{}:{} {}", file, frame.line, frame.name));
}

}  // namespace

RealMemory real_memory(const MemorySnapshot& snapshot, const FrameRules& rules) {
  RealMemory real{.devices = snapshot.devices.size(),
                  .kinds = std::vector<double>(rules.kinds.size())};
  Highest highest;
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i)
    if (const Highest own = highest_of(snapshot.devices[i]); i == 0 || own.held > highest.held) {
      highest = own;
      real.device = i;
    }
  if (snapshot.devices.empty()) return real;
  const DeviceSnapshot& device = snapshot.devices[real.device];
  real.events = device.events.size();
  real.peak = highest.held;
  real.reserved_at_peak = highest.reserved_then;
  real.reserved = highest.reserved;
  real.from_start = real.events > 0 && highest.first < 1;
  if (highest.event > 0)
    real.moment =
        on_one_line(rules.moment_of(snapshot.stacks[device.events[highest.event - 1].stack]));
  for (const SnapshotEvent& event : device.events)
    if (event.what == What::out_of_memory && !real.failed) real.failed = event.bytes;

  std::map<std::string, RequestsOfFrame> frames;
  for (const auto& [address, living] : living_at(device, highest.event)) {
    const std::vector<StackFrame>& stack = snapshot.stacks[living.stack];
    const std::size_t none = rules.kinds.size();
    const std::size_t kind = living.from_before ? none : rules.kind_of(stack).value_or(none);
    double& sum = living.from_before ? real.before : kind < none ? real.kinds[kind] : real.unknown;
    sum += living.bytes;
    const std::string frame = living.from_before ? "there before the recording"
                              : stack.empty()    ? "without frames"
                                                 : shown(stack);
    RequestsOfFrame& own = frames[frame];
    own.frame = frame;
    if (kind < none) own.kind = rules.kinds[kind].name;
    own.bytes += living.bytes;
    ++own.requests;
  }
  for (auto& [name, frame] : frames) real.frames.push_back(std::move(frame));
  std::ranges::stable_sort(real.frames, std::greater(), &RequestsOfFrame::bytes);
  return real;
}

namespace {

void add(ComparedKind& kind, const std::string& tensor_class, double bytes) {
  if (bytes <= 0) return;
  kind.predicted += bytes;
  kind.classes.emplace_back(tensor_class, bytes);
}

double resident_bytes(const Resident& resident, std::string_view tensor_class) {
  double bytes = 0;
  for (const Holding& holding : resident.holdings)
    if (holding.pool == Pool::device && to_text(holding.held) == tensor_class)
      bytes += holding.bytes;
  return bytes;
}

// One for each kind, one for what lasts, where that has no frames, and one for all else.
std::vector<ComparedKind> compared_kinds(const RealMemory& real, const FrameRules& rules,
                                         const MemoryPeak& predicted, const Resident& resident) {
  const std::size_t lasting = rules.kinds.size(), other = lasting + 1;
  std::vector<ComparedKind> kinds = mapped(
      rules.kinds, [](const FrameRules::Kind& kind) { return ComparedKind{.name = kind.name}; });
  kinds.push_back({.name = "what lasts: parameters, optimizer"});
  kinds.push_back({.name = "other"});
  const auto place_of = [&](std::size_t kind) {
    return real.before > 0 && rules.kinds[kind].lasting ? lasting : kind;
  };
  for (std::size_t i = 0; i < rules.kinds.size(); ++i) kinds[place_of(i)].real += real.kinds[i];
  kinds[lasting].real += real.before;
  kinds[other].real = real.unknown;
  for (const auto& [name, bytes] : predicted.classes) {
    const auto kind = rules.kind_of_class(name);
    const std::size_t place = kind ? place_of(*kind) : other;
    const double kept =
        real.before > 0 && place != lasting ? std::min(bytes, resident_bytes(resident, name)) : 0;
    add(kinds[lasting], name, kept);
    add(kinds[place], name, bytes - kept);
  }
  for (ComparedKind& kind : kinds)
    std::ranges::stable_sort(kind.classes, std::greater(), [](const auto& c) { return c.second; });
  std::erase_if(kinds, [](const ComparedKind& kind) { return kind.real + kind.predicted <= 0; });
  std::ranges::stable_sort(kinds, std::greater(), &ComparedKind::real);
  return kinds;
}

}  // namespace

MemoryComparison compare_memory(const Scenario& scenario, const Footprint& footprint,
                                RealMemory real, const FrameRules& rules) {
  MemoryComparison result;
  const StepMemory step = memory_of_step(scenario, footprint);
  result.predicted = real.from_start ? footprint.device : step.reading;
  result.predicted_reserved =
      result.predicted.peak.bytes * (1 + footprint.slack / footprint.device.peak.bytes);
  result.kinds = compared_kinds(real, rules, result.predicted.peak, step.resident);
  result.real = std::move(real);
  return result;
}

}  // namespace stepsim
