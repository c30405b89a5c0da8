// `memory` says whether a scenario fits, and if not, what would make it fit.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/studies/fidelity/memory_comparison.hpp"
#include "analysis/studies/predict/footprint_text.hpp"
#include "analysis/studies/predict/rank_memory.hpp"
#include "cli/command.hpp"
#include "cli/grpo.hpp"
#include "cli/next_steps_text.hpp"
#include "cli/progress.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "cli/taken_text.hpp"
#include "scenarios/load/load_scenario.hpp"
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
      size(c.real.peak), c.real.moment.empty() ? "" : ", in " + c.real.moment, size(peak.bytes),
      peak.phase, off_text(c.error()), furthest_text(c), size(c.real.reserved_at_peak),
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
  return parts_if("beside", "with --beside: the snapshot of a real run", comparison, parts);
}

MemoryComparison comparison_sample() {
  MemoryComparison sample;
  sample.real.peak = 1;
  sample.real.failed = 1;
  sample.real.frames.emplace_back();
  sample.kinds.push_back({.name = "", .real = 1, .classes = {{"NAME", 0}}});
  return sample;
}

constexpr std::size_t all_changes = 100;

// Writes the answer first, then what it is an answer about.
std::string head_of(const Scenario& scenario, const Footprint& f,
                    const std::vector<OtherVerdict>& others) {
  return fmt::format("{}{}{} of {} usable: {}\n{}\n{}{}\n", title_line(scenario),
                     others.empty() ? "" : "as assumed: ", to_text(Bytes{f.needed()}),
                     to_text(Bytes{f.capacity}), verdict_text(f), others_text(f, others),
                     taken_paragraph(scenario), not_modelled_paragraph(scenario));
}

// A run that does not fit gets its largest micro-batch among what would make it fit.
std::optional<std::int64_t> largest_of(const Scenario& scenario, const Footprint& f) {
  if (f.fit() == Fit::oom) return std::nullopt;
  return largest_micro_batch(scenario, fits_from);
}

std::string largest_text(const Scenario& scenario, const Footprint& f) {
  const auto largest = largest_of(scenario, f);
  if (!largest) return "";
  return fmt::format("the largest micro-batch that fits in {}: {}\n", chance_text(fits_from),
                     *largest > 0 ? std::to_string(*largest) : "none");
}

std::string text_of(const Scenario& scenario, const Footprint& f) {
  std::string text =
      fmt::format("{}\n{}\n", classes_table(f, scenario.cluster.gpu.title), moments_table(f));
  text += fmt::format("{}; the peak is in {}{}{}\n", verdict_text(f), f.device.peak.phase,
                      f.device.peak.name == f.device.peak.phase ? "" : ", at " + f.device.peak.name,
                      stage_text(f));
  text += shown_text(f, device_tool(scenario)) + failure_text(f) + host_text(f) +
          largest_text(scenario, f);
  text +=
      "this follows the order of the program; over time gradients wait for reductions and copies, "
      "and gathers\ncome early: `stepsim run` has both\n";
  return text + notes_text(scenario);
}

Records records_of(const Footprint& f, std::optional<std::int64_t> largest,
                   const std::optional<MemoryComparison>& beside, const FittingSteps& fitting,
                   const std::vector<OtherVerdict>& others) {
  return joined({footprint_records(f),
                 {{"largest_micro_batch", "that fits in 9 of 10 runs; null where this does not fit",
                   largest}},
                 {comparison_record(beside)},
                 fitting_records(fitting),
                 {others_record(others)}});
}

}  // namespace

Records memory_sample() {
  return records_of(footprint_sample(), 1, comparison_sample(),
                    {{NextStep{}}, {NextStep{}}, {NextStep{}}}, {OtherVerdict{}});
}

int memory_command(const CommandLine& line) {
  const auto options = parse("memory", line.words);
  if (!options) return exit_code::yes;
  const std::vector<Setting> settings = settings_of(*options);
  const Scenario scenario = load_scenario(line.data, options->words.front(), settings);
  const Records asked = asked_records(scenario, {options->words.front(), settings});
  const std::string taken = assumptions_text(scenario.assumptions);
  const auto snapshot = options->get("beside");
  const NextStepQuestion question{.data = line.data,
                                  .source = options->words.front(),
                                  .settings = settings,
                                  .scenario = scenario,
                                  .progress = progress_bar("changes")};
  if (scenario.grpo) {
    if (snapshot) throw UserError("--beside: snapshots of GRPO jobs are not read, leave it out");
    const GrpoMemory memory = grpo_memory(scenario);
    FittingSteps fitting;
    if (memory.failure) fitting = fitting_steps(question);
    if (options->has("json"))
      print_result(grpo_memory_kind, asked,
                   joined({grpo_memory_records(memory), fitting_records(fitting)}));
    else
      say("{}{}{}{}", taken, grpo_memory_text(scenario, memory), notes_text(scenario),
          memory.failure ? fitting_text(fitting, all_changes) : "");
    return memory.failure ? exit_code::no : exit_code::yes;
  }
  Footprint needs = footprint(scenario);
  needs.reserved = reserved_in_order(scenario, needs);
  const bool fits = needs.fit() != Fit::oom;
  const auto others = fits ? std::vector<OtherVerdict>{} : other_verdicts(question);
  std::optional<MemoryComparison> beside;
  if (snapshot) beside = load_comparison(line.data, scenario, needs, *snapshot);
  if (options->has("json")) {
    print_result(memory_kind, asked,
                 records_of(needs, largest_of(scenario, needs), beside,
                            fits ? FittingSteps{} : fitting_steps(question), others));
  } else if (options->has("brief")) {
    say("{}{} of {} usable: {}\n{}", beside ? sentence_of(*beside) : "",
        to_text(Bytes{needs.needed()}), to_text(Bytes{needs.capacity}), verdict_text(needs),
        taken_in_brief(scenario));
  } else {
    print_at_once(head_of(scenario, needs, others) + taken +
                  (beside ? comparison_text(*beside) : "") + text_of(scenario, needs));
    if (!fits) say("{}", fitting_text(fitting_steps(question), all_changes));
  }
  return fits ? exit_code::yes : exit_code::no;
}

}  // namespace stepsim
