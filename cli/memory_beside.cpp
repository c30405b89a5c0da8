#include "cli/memory_beside.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_frames = 8;

std::string size(double bytes) {
  return to_text(Bytes{bytes});
}

std::string off_text(double error) {
  if (std::abs(error) < 0.005) return "which is right";
  return fmt::format("{:.0f} % too {}", 100 * std::abs(error), error < 0 ? "little" : "much");
}

// Says where the prediction is furthest from the run, when it is not right.
std::string furthest_text(const MemoryComparison& c) {
  if (std::abs(c.error()) < 0.005) return "";
  const auto furthest = std::ranges::max_element(
      c.kinds, {}, [](const ComparedKind& kind) { return std::abs(kind.off()); });
  return fmt::format("most of that in {}: {} too {}\n", furthest->name,
                     size(std::abs(furthest->off())), furthest->off() < 0 ? "little" : "much");
}

std::string moment_text(const std::string& moment) {
  return moment.empty() ? "" : ", in " + moment;
}

std::string recording_text(const RealMemory& real) {
  if (real.events == 0)
    return "nothing was recorded: what is known is the moment when the snapshot was taken, not the "
           "peak";
  std::string text =
      fmt::format("device {} of {}, {} entries", real.device, real.devices, real.events);
  if (!real.from_start)
    text += "; the recording began when memory was in use, so the prediction is of a step alone";
  if (real.reserved > 1.01 * real.reserved_at_peak)
    text += fmt::format("; it reserves {} at the most", size(real.reserved));
  if (real.failed) text += fmt::format("; a request of {} found no room", size(*real.failed));
  return text;
}

// Writes "activations 12.6 GB, checkpoints 22.5 GB".
std::string classes_text(const ComparedKind& kind) {
  std::string text;
  for (const auto& [name, bytes] : kind.classes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, size(bytes));
  return text;
}

}  // namespace

MemoryComparison load_comparison(const Catalogue& data, const Scenario& scenario,
                                 const Footprint& footprint, const std::string& snapshot) {
  const FrameRules rules = frame_rules(data);
  RealMemory real = real_memory(load_memory_snapshot(snapshot), rules);
  if (real.peak <= 0)
    fail(snapshot, "holds no memory in use: expected blocks, or what was recorded");
  return compare_memory(scenario, footprint, std::move(real), rules);
}

std::string sentence_of(const MemoryComparison& c) {
  const MemoryPeak& peak = c.predicted.peak;
  return fmt::format(
      "the real run holds {} at its peak{}; predicted are {}, in {}, {}\n{}"
      "it then reserves {}, {} more than it holds; predicted are {}, {} more\n",
      size(c.real.peak), moment_text(c.real.moment), size(peak.bytes), peak.phase,
      off_text(c.error()), furthest_text(c), size(c.real.reserved_at_peak),
      size(std::max(0.0, c.real.reserved_at_peak - c.real.peak)), size(c.predicted_reserved),
      size(c.predicted_reserved - peak.bytes));
}

std::string comparison_text(const MemoryComparison& c) {
  TextTable kinds{{"at the peak", " real", " predicted", " off", "of our classes"}};
  for (const ComparedKind& kind : c.kinds)
    kinds.rows.push_back({kind.name, size(kind.real), size(kind.predicted),
                          kind.real > 0 ? signed_percent(kind.error(), 0) : "-",
                          classes_text(kind)});
  TextTable frames{{"largest in the real run", " size", " requests", "for"}};
  for (const RequestsOfFrame& frame : c.real.frames) {
    if (frames.rows.size() == most_frames) break;
    frames.rows.push_back(
        {frame.frame, size(frame.bytes), std::to_string(frame.requests), frame.kind});
  }
  return fmt::format("{}{}\n\n{}\n{}\n", sentence_of(c), recording_text(c.real), render(kinds),
                     render(frames));
}

Record comparison_record(const std::optional<MemoryComparison>& comparison) {
  const auto parts = [](const MemoryComparison& c) -> Records {
    const RealMemory& real = c.real;
    const auto kind = [](const ComparedKind& each) -> Records {
      return {{"kind", "what it is for", each.name},
              {"real_bytes", "at the real run's peak", Bytes{each.real}},
              {"predicted_bytes", "at the predicted peak", Bytes{each.predicted}},
              {"error", "of the prediction",
               each.real > 0 ? std::optional(each.error()) : std::nullopt, Measure::error},
              {"classes", "of the prediction, with bytes", pairs_of(each.classes)}};
    };
    const auto frame = [](const RequestsOfFrame& each) -> Records {
      return {{"frame", "file, line and function", each.frame},
              {"kind", "what it is for, where frames tell", each.kind},
              {"bytes", "at the peak", Bytes{each.bytes}},
              {"requests", "that this is", each.requests}};
    };
    const auto failed = real.failed ? std::optional(Bytes{*real.failed}) : std::nullopt;
    return {
        {"peak_bytes", "that the fullest device held at the most", Bytes{real.peak}},
        {"moment", "of that peak, as far as frames tell", real.moment},
        {"reserved_bytes", "of segments at the most", Bytes{real.reserved}},
        {"reserved_at_peak_bytes", "of segments at the peak", Bytes{real.reserved_at_peak}},
        {"before_bytes", "at the peak, from before the recording", Bytes{real.before}},
        {"failed_bytes", "of the first request without room", failed},
        {"device", "the fullest one", real.device},
        {"entries", "of its recording that take memory or give it back; 0: only its end is known",
         real.events},
        {"from_start", "nothing was in use when the recording began", real.from_start},
        {"predicted_peak_bytes", "of the same", Bytes{c.predicted.peak.bytes}},
        {"predicted_moment", "of that", c.predicted.peak.phase},
        {"predicted_reserved_bytes", "of the same", Bytes{c.predicted_reserved}},
        {"error", "of the predicted peak", c.error(), Measure::error},
        {"kinds", "what it was for, largest first", list_of(c.kinds, kind)},
        {"frames", "who asked for it, largest first", list_of(real.frames, frame)}};
  };
  return {"beside", "with --beside: the snapshot of a real run",
          comparison ? std::optional<Records>(parts(*comparison)) : std::nullopt};
}

MemoryComparison comparison_sample() {
  MemoryComparison sample;
  sample.real.peak = 1;
  sample.real.failed = 1;
  sample.real.frames.emplace_back();
  sample.kinds.push_back({.name = "", .real = 1, .classes = {{"NAME", 0}}});
  return sample;
}

}  // namespace stepsim
