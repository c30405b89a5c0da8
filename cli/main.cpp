// This holds the table of commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/failures.hpp"
#include "cli/front_options.hpp"
#include "cli/import.hpp"
#include "cli/pages.hpp"
#include "cli/screen.hpp"
#include "cli/usage_text.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

constexpr std::array commands{
    Command{"run", "one training step of a scenario: time, breakdown, memory",
            stepsim::run_command},
    Command{"memory", "does a scenario fit, and what would make it fit", stepsim::memory_command},
    Command{"sweep", "a scenario over many settings: table, scaling, best points", sweep_command},
    Command{"plan", "how to split a job over a machine: the best plans, and how sure that is",
            plan_command},
    Command{"merge", "the table of a sweep out of its shards", merge_command},
    Command{"anchor", "let predictions learn from a run that you have: its log", anchor_command},
    Command{"diagnose", "what is likely wrong with a run: its log beside a replay of each fault",
            diagnose_command},
    Command{"explain", "why one step takes longer than another: by setting and by cause",
            explain_command},
    Command{"diff", "which settings of two scenarios differ, and where each comes from",
            diff_command},
    Command{"together", "what two jobs on one fabric lose to each other", together_command},
    Command{"check", "do claims hold, and how sure is that", check_command},
    Command{"validate", "measured runs beside what is predicted for them", validate_command},
    Command{"fit", "constants of a stack, of kernels or of a network, fitted to what was measured",
            fit_command},
    Command{"kernels", "single kernels beside measured ones", kernels_command},
    Command{"report", "a page to look at: timeline, breakdown, memory, links", report_command},
    Command{"serve", "a page in the browser to try settings on, and routes for programs",
            serve_command},
    Command{"mcp", "answers coding agents: Model Context Protocol over standard input and output",
            mcp_command},
    Command{"export", "a step for Perfetto and Chrome's tracing page", export_command},
    Command{"collective", "bandwidth of a collective by message size", collective_command},
    Command{"import", "a file of another program as a scenario", import_command},
    Command{"list", "what the catalogue holds", list_command},
    Command{"show", "one entry of the catalogue, with the source of every figure", show_command},
};

// Commands that were called something else: still understood for a while, with a note.
struct Renamed {
  std::string_view before;
  std::array<std::string_view, 2> now;
};
constexpr std::array renamed{Renamed{"calibrate", {"fit", "stack"}}};

void print_help() {
  say("stepsim {} - predicts what collectives and training steps cost on modelled GPU clusters\n\n"
      "usage: stepsim [--data DIR...] COMMAND [ARGUMENTS]\n"
      "       stepsim COMMAND --help\n"
      "       stepsim --version\n\ncommands:\n",
      STEPSIM_VERSION);
  for (const Command& command : commands) say("  {:<10}  {}\n", command.name, command.summary);
  say("\noptions before the command:\n");
  for (const OptionSpec& option : front_options)
    say("  {:<14}  {}\n", fmt::format("--{} {}", option.name, option.value),
        wrap(option.help, 80, 18));
  say("\nthe installed catalogue: {}\n"
      "exit codes: 0 yes or done, 1 the answer is no, 2 the input is wrong, 3 a bug of ours\n",
      installed_data());
}

void rename_command(std::vector<std::string>& words) {
  for (const Renamed& each : renamed) {
    if (words.front() != each.before) continue;
    say(stderr, "note: `stepsim {}` is now `stepsim {}`\n", each.before, fmt::join(each.now, " "));
    words.erase(words.begin());
    words.insert(words.begin(), each.now.begin(), each.now.end());
  }
}

int run_command_of(const Command& command, std::span<const std::string> words,
                   const FrontOptions& options) {
  if (words.size() == 1 && words.front() == std::string(help_as) + "man") {
    print_command_page(command);
    return exit_code::yes;
  }
  // Help needs no data.
  const bool help = std::ranges::any_of(
      words, [](const std::string& word) { return word.starts_with("--help"); });
  return command.run({help ? Catalogue() : catalogue_of(options), words});
}

int run(std::vector<std::string> words) {
  const FrontOptions options = take_front_options(words);
  if (words.empty() || words.front() == "--help" || words.front() == "-h" ||
      words.front() == "help") {
    print_help();
    return words.empty() ? exit_code::input : exit_code::yes;
  }
  if (words.front() == "--version") {
    say("stepsim {}\n", STEPSIM_VERSION);
    return exit_code::yes;
  }
  if (words.front().starts_with(help_as)) {
    print_page(words.front().substr(help_as.size()), commands);
    return exit_code::yes;
  }
  rename_command(words);
  std::vector<std::string> names;
  for (const Command& command : commands) {
    names.emplace_back(command.name);
    if (command.name == words.front())
      return run_command_of(command, std::span(words).subspan(1), options);
  }
  if (words.front().starts_with('-')) {
    std::vector<std::string> known{"--help", "--version"};
    for (const OptionSpec& option : front_options)
      known.push_back(fmt::format("--{}", option.name));
    throw UserError(
        fmt::format("unknown option {}{}", words.front(), did_you_mean(words.front(), known)));
  }
  throw UserError(fmt::format("no command \"{}\"{}; `stepsim --help` lists them", words.front(),
                              did_you_mean(words.front(), names)));
}

// The standard library ends a program in some places where it has no memory, such as for the name
// of a file in a folder, instead of throwing.
[[noreturn]] void end_at_once() {
  constexpr std::string_view why = "stepsim: too little memory, or a bug of ours\n";
  std::fwrite(why.data(), 1, why.size(), stderr);
  std::_Exit(exit_code::bug);
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  using namespace stepsim;
  std::set_terminate(end_at_once);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write(), and not the end
  std::signal(SIGXFSZ, SIG_IGN);  // nor is a file that may not grow
  return exit_code_of([&] { return run({argv + std::min(argc, 1), argv + argc}); });
}
