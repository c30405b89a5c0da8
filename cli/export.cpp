// `export`: a step as other programs read it.
#include <fmt/format.h>

#include <array>

#include "analysis/report/trace_events.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/outputs.hpp"
#include "cli/runs.hpp"
#include "sim/base/error.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs{
    OptionSpec{"perfetto", "FILE", "write Trace Event JSON: ui.perfetto.dev, chrome://tracing"},
    OptionSpec{"max-events", "N",
               "slices and ends of arrows at most; beyond, short operations that follow each other "
               "share a slice (default: 200000)"},
    OptionSpec{"set", "KEY=VALUE",
               "instead of what the scenario says, such as strategy.zero=2; repeats", 0, true},
};
constexpr Usage usage{
    "stepsim export RUN --perfetto FILE [options]",
    "Writes a step as a trace for Perfetto and Chrome's tracing page: a track per rank and stream, "
    "memory and the use of links as counters, arrows from the host to what it launched and into "
    "collectives. RUN is a trace that `stepsim run -o` saved, or a scenario. Ranks that are alike "
    "share a track that says for how many it stands; `run --fold off -o RUN` keeps them apart.",
    option_specs,
    "  stepsim export llama32-3b-sft-zero3 --perfetto step.json\n"
    "  stepsim export step.h5 --perfetto step.json --max-events 1000000\n",
    1};

constexpr std::uint32_t usual_events = 200'000;

}  // namespace

int export_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty()) throw UserError(fmt::format("which run? usage: {}", usage.call));
  const auto path = options->get("perfetto");
  if (!path) throw UserError("--perfetto FILE is missing: where the trace goes");
  std::uint32_t most_events = usual_events;
  if (const auto text = options->get("max-events"))
    most_events = parse_count("--max-events", *text, 100, 100'000'000);
  require_no_input(*path, run_files(line, options->words.front(), settings_of(*options)));
  const Run run = load_run(line, options->words.front(), settings_of(*options));
  const TraceEvents trace = trace_events(run, most_events);
  write_file(*path, trace.json);
  fmt::print(
      "{}: {} operations in {} slices{}, {}\nopen it at https://ui.perfetto.dev or "
      "chrome://tracing\n",
      *path, trace.operations, trace.slices,
      trace.resolution > 0 ? fmt::format(" (those that follow each other within {} share one)",
                                         to_text(Seconds{trace.resolution}))
                           : "",
      to_text(Bytes{static_cast<double>(trace.json.size())}));
  return exit_code::yes;
}

}  // namespace stepsim
