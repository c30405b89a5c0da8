// `report`: runs and sweeps as a page to look at.
#include <fmt/format.h>

#include <array>
#include <deque>

#include "analysis/report/page.hpp"
#include "analysis/report/page_sweep.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/runs.hpp"
#include "sim/error.hpp"
#include "sim/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs{
    OptionSpec{"output", "FILE", "where the page goes", 'o'},
    OptionSpec{"set", "KEY=VALUE",
               "instead of what the scenarios say, such as strategy.zero=2; repeats", 0, true},
};
constexpr Usage usage{
    "stepsim report RUN|SWEEP... -o PAGE.html [options]",
    "Writes a page that needs nothing but a browser: what every stream did, where the time goes, "
    "memory over time, how full the links were, and every constant with its grade. RUN is a trace "
    "that `stepsim run -o` saved, or a scenario; what `stepsim sweep -o` saved becomes plots and a "
    "table.",
    option_specs,
    "  stepsim report llama32-3b-sft-zero3 -o step.html\n"
    "  stepsim report step.h5 -o step.html\n"
    "  stepsim report qwen3-30b-sft-zero3 qwen3-30b-sft-zero2moe -o both.html\n"
    "  stepsim report scaling.h5 -o scaling.html\n",
    3};

Page empty_page(const Options& options) {
  return {.title = fmt::format("{}", fmt::join(options.words, " and ")),
          .steps = {},
          .gap = {},
          .claims = {},
          .sweep = {}};
}

void add_sweep(const std::string& path, Page& page) {
  if (page.sweep)
    throw UserError(
        fmt::format("{}: one sweep is enough for a page; `stepsim merge` puts shards "
                    "together",
                    path));
  const SweepTable table = read_sweep(path);
  page.sweep = page_sweep(table, report_of(table));
}

}  // namespace

int report_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty()) throw UserError(fmt::format("which run? usage: {}", usage.call));
  const auto path = options->get("output");
  if (!path) throw UserError("-o PAGE.html is missing: where the page goes");
  Page page = empty_page(*options);
  std::deque<Run> runs;  // the page points at them
  for (const std::string& word : options->words)
    if (holds_sweep(word)) {
      add_sweep(word, page);
    } else {
      runs.push_back(load_run(line, word, settings_of(*options)));
      page.steps.push_back({word, &runs.back()});
    }
  const std::string html = page_html(page);
  write_file(*path, html);
  fmt::print("{}: {}\n", *path, to_text(Bytes{static_cast<double>(html.size())}));
  return exit_code::yes;
}

}  // namespace stepsim
