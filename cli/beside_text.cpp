#include "cli/beside_text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "analysis/studies/anchor/anchoring.hpp"
#include "cli/screen.hpp"

namespace stepsim {
namespace {

// This is what a log counts, beside what is predicted of one of these.
struct Compared {
  bool micro_batches = false;  // it counts those, and not optimizer steps
  std::optional<double> seen;  // s of one that it counts
  double predicted = 0;
  std::optional<Range> likely;
  double total = 0;  // that are predicted; 0: the scenario has no length

  double error() const { return predicted / *seen - 1; }
  bool inside() const { return likely && likely->low <= *seen && *seen <= likely->high; }
};

Compared compared(const TrainerLog& log, const Prediction& p,
                  const std::optional<Interval>& interval) {
  Compared result;
  const SeenRun seen = seen_run(log, p);
  const double parts = seen.parts;
  result.micro_batches = seen.micro_batches;
  result.predicted = p.step_time.value / parts;
  if (interval) result.likely = {interval->step_time.low / parts, interval->step_time.high / parts};
  if (p.length)
    result.total = result.micro_batches ? p.length->iterations : p.length->optimizer_steps;
  if (seen.step_time) result.seen = *seen.step_time / parts;
  return result;
}

std::string verdict_of(const TrainerLog& log, const Compared& c) {
  if (!c.seen) return "the log holds no time yet\n";
  const std::string off = fmt::format("the prediction is {:.0f} % {}", 100 * std::abs(c.error()),
                                      c.error() < 0 ? "too short" : "too long");
  std::string text =
      c.likely ? fmt::format("{} the likely range; {}", c.inside() ? "within" : "outside", off)
               : off;
  if (phase_of(log) == RunPhase::first_steps)
    text += "; first steps are slower than later ones, look again after ten";
  return text + "\n";
}

std::string length_text(const TrainerLog& log, const Compared& c) {
  if (!log.total || c.total <= 0) return "";
  const double predicted = std::round(c.total);
  if (std::abs(predicted - *log.total) <= 0.01 * *log.total) return "";
  return fmt::format(
      "             the run makes {:.0f} {}, the scenario {:.0f}: batch, data or epochs differ\n",
      *log.total, c.micro_batches ? "micro-batches" : "steps", predicted);
}

std::string left_text(const TrainerLog& log, const Compared& c) {
  if (!log.total || *log.total <= log.done || !c.seen) return "";
  const double left = *log.total - log.done;
  return fmt::format("             {} left at its pace, {} as predicted\n",
                     to_text(Seconds{left * log.recent.value_or(*c.seen)}),
                     to_text(Seconds{left * c.predicted}));
}

std::string pace_text(const TrainerLog& log, const Compared& c) {
  if (!c.seen) return "";
  const std::string_view what = c.micro_batches ? "micro-batch" : "step";
  std::string text =
      fmt::format("             {} a {} in the run", to_text(Seconds{*c.seen}), what);
  if (log.recent && std::abs(*log.recent / *c.seen - 1) > 0.05)
    text += fmt::format(" ({} of late)", to_text(Seconds{*log.recent}));
  text += fmt::format(", {} predicted", to_text(Seconds{c.predicted}));
  if (c.likely)
    text += fmt::format(" (likely {} to {})", to_text(Seconds{c.likely->low}),
                        to_text(Seconds{c.likely->high}));
  return text + "\n";
}

}  // namespace

std::string beside_text(const std::optional<TrainerLog>& log, const Prediction& p,
                        const std::optional<Interval>& interval) {
  if (!log) return "";
  const Compared c = compared(*log, p, interval);
  const std::string steps = log->total ? fmt::format("{:.0f} of {:.0f}", log->done, *log->total)
                                       : fmt::format("{:.0f}", log->done);
  std::string text = fmt::format("the real run {}", verdict_of(*log, c));
  text += fmt::format("             {}: {} {}, {}\n", log->kind, steps,
                      c.micro_batches ? "micro-batches" : "steps", to_text(phase_of(*log)));
  text += pace_text(*log, c);
  if (log->memory)
    text += fmt::format("             {} of a GPU in the run, {} predicted\n",
                        to_text(Bytes{*log->memory}), to_text(Bytes{p.memory.needed()}));
  text += length_text(*log, c) + left_text(*log, c);
  if (c.seen || log->memory)
    text +=
        "             let all answers follow it: `stepsim anchor`; what may be wrong with it: "
        "`stepsim diagnose`\n";
  return text;
}

Record beside_record(const std::optional<TrainerLog>& log, const Prediction& p,
                     const std::optional<Interval>& interval) {
  const auto parts = [&](const TrainerLog& seen) -> Records {
    const Compared c = compared(seen, p, interval);
    const auto of = [&](auto value) { return c.seen ? std::optional(value) : std::nullopt; };
    return {{"kind", "of log", seen.kind},
            {"phase", "where in its course the run is", to_text(phase_of(seen))},
            {"counts", "what the log counts", c.micro_batches ? "micro-batches" : "steps"},
            {"done", "of them", seen.done},
            {"total", "of them", seen.total},
            {"seen_s", "of one of them in the run", c.seen, Measure::seconds},
            {"recent_s", "of the last ones", seen.recent, Measure::seconds},
            {"predicted_s", "of one of them", c.predicted, Measure::seconds},
            {"error", "of the prediction", of(c.seen ? c.error() : 0.0), Measure::error},
            {"inside", "the run lies in the likely range",
             c.seen && c.likely ? std::optional(c.inside()) : std::nullopt},
            {"memory_bytes", "of a GPU in the run", seen.memory, Measure::bytes}};
  };
  return parts_if("beside", "with --beside: the real run", log, parts);
}

}  // namespace stepsim
