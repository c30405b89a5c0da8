// `report`: a run, or two of them, as a page to look at.
#include <fmt/format.h>

#include <array>

#include "analysis/report/page.hpp"
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
    "stepsim report RUN [RUN] -o PAGE.html [options]",
    "Writes a page that needs nothing but a browser: what every stream did, where the time goes, "
    "memory over time, how full the links were, and every constant with its grade. RUN is a trace "
    "that `stepsim run -o` saved, or a scenario.",
    option_specs,
    "  stepsim report llama32-3b-sft-zero3 -o step.html\n"
    "  stepsim report step.h5 -o step.html\n"
    "  stepsim report qwen3-30b-sft-zero3 qwen3-30b-sft-zero2moe -o both.html\n",
    2};

}  // namespace

int report_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty()) throw UserError(fmt::format("which run? usage: {}", usage.call));
  const auto path = options->get("output");
  if (!path) throw UserError("-o PAGE.html is missing: where the page goes");
  std::vector<Run> runs;
  for (const std::string& word : options->words)
    runs.push_back(load_run(line, word, settings_of(*options)));
  Page page{.title = fmt::format("{}", fmt::join(options->words, " and ")),
            .steps = {},
            .gap = {},
            .claims = {},
            .plots = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) page.steps.push_back({options->words[i], &runs[i]});
  const std::string html = page_html(page);
  write_file(*path, html);
  fmt::print("{}: {}\n", *path, to_text(Bytes{static_cast<double>(html.size())}));
  return exit_code::yes;
}

}  // namespace stepsim
