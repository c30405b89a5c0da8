// The table of commands, the one place that catches, and the exit codes.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "sim/error.hpp"

namespace {

using stepsim::Command;

constexpr std::array commands{
    Command{"collective", "bandwidth of a collective by message size", stepsim::collective_command},
    Command{"list", "what the catalogue holds", stepsim::list_command},
    Command{"show", "one entry of the catalogue, with the source of every figure",
            stepsim::show_command},
};

// The data lies beside an installed binary, or in the source tree that the binary was built from.
std::string find_data() {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const auto installed = self.parent_path() / STEPSIM_INSTALL_DATA;
  if (!failed && std::filesystem::is_directory(installed / "topology", failed))
    return installed.lexically_normal().string();
  return STEPSIM_SOURCE_DATA;
}

void print_help() {
  fmt::print(
      "stepsim {} - what one training step costs on a GPU cluster, replayed operation by "
      "operation\n\nusage: stepsim COMMAND [ARGUMENTS]      stepsim COMMAND --help\n\n",
      STEPSIM_VERSION);
  for (const Command& command : commands) fmt::print("  {:<12}{}\n", command.name, command.summary);
  fmt::print(
      "\nexit codes: 0 yes or done, 1 the answer is no, 2 the input is wrong, 3 a bug of ours\n");
}

int run(std::vector<std::string> words) {
  if (words.empty() || words.front() == "--help" || words.front() == "-h" ||
      words.front() == "help") {
    print_help();
    return words.empty() ? stepsim::exit_code::input : stepsim::exit_code::yes;
  }
  if (words.front() == "--version") {
    fmt::print("stepsim {}\n", STEPSIM_VERSION);
    return stepsim::exit_code::yes;
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    names.emplace_back(command.name);
    if (command.name != words.front()) continue;
    const std::string data = find_data();
    return command.run({data, std::span(words).subspan(1)});
  }
  throw stepsim::UserError(fmt::format("no command \"{}\"{}; `stepsim --help` lists them",
                                       words.front(), stepsim::did_you_mean(words.front(), names)));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run({argv + 1, argv + argc});
    // A reader that went away, or a full disk behind stdout, is told and not ignored.
    if (std::fflush(stdout) != 0) throw stepsim::UserError("the output could not be written");
    return code;
  } catch (const stepsim::UserError& error) {
    std::fflush(stdout);
    fmt::print(stderr, "stepsim: {}\n", error.what());
    return stepsim::exit_code::input;
  } catch (const std::exception& error) {
    fmt::print(stderr, "stepsim: this is a bug of ours: {}\n", error.what());
    return stepsim::exit_code::bug;
  }
}
