// This holds the table of commands.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/failures.hpp"
#include "cli/front_options.hpp"
#include "cli/screen.hpp"
#include "cli/usage_text.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::array commands{
    Command{"run", stepsim::run_command},  Command{"memory", stepsim::memory_command},
    Command{"sweep", sweep_command},       Command{"plan", plan_command},
    Command{"merge", merge_command},       Command{"anchor", anchor_command},
    Command{"diagnose", diagnose_command}, Command{"explain", explain_command},
    Command{"diff", diff_command},         Command{"together", together_command},
    Command{"check", check_command},       Command{"validate", validate_command},
    Command{"kernels", kernels_command},   Command{"report", report_command},
    Command{"serve", serve_command},       Command{"mcp", mcp_command},
    Command{"export", export_command},     Command{"collective", collective_command},
    Command{"import", import_command},     Command{"list", list_command},
    Command{"show", show_command}};

void print_help() {
  say("stepsim {} - predicts what collectives and training steps cost on modelled GPU clusters\n\n"
      "usage: stepsim [--data DIR...] COMMAND [ARGUMENTS]\n"
      "       stepsim COMMAND --help\n"
      "       stepsim --version\n\ncommands:\n",
      STEPSIM_VERSION);
  for (const Command& command : commands)
    say("  {:<10}  {}\n", command.name, usage_of_command(command.name).brief);
  say("\noptions before the command:\n");
  for (const OptionSpec& option : front_options())
    say("  {:<14}  {}\n", fmt::format("--{} {}", option.name, option.value),
        wrap(option.help, 80, 18));
  say("\nthe installed catalogue: {}\n"
      "exit codes: 0 yes or done, 1 the answer is no, 2 the input is wrong, 3 a bug of ours\n",
      installed_data());
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
  std::vector<std::string> names;
  for (const Command& command : commands) {
    names.emplace_back(command.name);
    if (command.name == words.front())
      return run_command_of(command, std::span(words).subspan(1), options);
  }
  if (words.front().starts_with('-')) {
    std::vector<std::string> known{"--help", "--version"};
    for (const OptionSpec& option : front_options())
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
