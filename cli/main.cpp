// The table of commands, the one place that catches, and the exit codes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

constexpr std::array commands{
    Command{"run", "one training step of a scenario: time, breakdown, memory",
            stepsim::run_command},
    Command{"memory", "does a scenario fit, and what would make it fit", stepsim::memory_command},
    Command{"sweep", "a scenario over many settings: table, scaling, best points", sweep_command},
    Command{"merge", "the table of a sweep out of its shards", merge_command},
    Command{"explain", "why one step takes longer than another, in rows that add up",
            explain_command},
    Command{"diff", "which settings of two scenarios differ, and where each comes from",
            diff_command},
    Command{"check", "do claims hold, and how sure is that", check_command},
    Command{"validate", "measured runs beside what is predicted for them", validate_command},
    Command{"calibrate", "fit the free constants of a stack to measured rows", calibrate_command},
    Command{"kernels", "single kernels beside measured ones, and the curve fitted to them",
            kernels_command},
    Command{"report", "a page to look at: timeline, breakdown, memory, links", report_command},
    Command{"export", "a step for Perfetto and Chrome's tracing page", export_command},
    Command{"collective", "bandwidth of a collective by message size", collective_command},
    Command{"list", "what the catalogue holds", list_command},
    Command{"show", "one entry of the catalogue, with the source of every figure", show_command},
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
      "stepsim {} - predicts what collectives and training steps cost on modelled GPU clusters\n\n"
      "usage: stepsim [--data DIR] COMMAND [ARGUMENTS]\n"
      "       stepsim COMMAND --help\n"
      "       stepsim --version\n\ncommands:\n",
      STEPSIM_VERSION);
  for (const Command& command : commands)
    fmt::print("  {:<10}  {}\n", command.name, command.summary);
  fmt::print(
      "\noptions before the command:\n"
      "  --data DIR  the folder that holds topology/ with the catalogue (default {})\n\n"
      "exit codes: 0 yes or done, 1 the answer is no, 2 the input is wrong, 3 a bug of ours\n",
      find_data());
}

// Takes `--data DIR` off the front.
std::string take_data(std::vector<std::string>& words) {
  std::string data;
  while (!words.empty() && words.front().starts_with("--data")) {
    const std::string word = words.front();
    std::size_t taken = 1;
    std::string value;
    if (word.starts_with("--data=")) {
      value = word.substr(7);
    } else if (word == "--data") {
      taken = 2;
      if (words.size() > 1) value = words[1];
    } else {
      break;
    }
    if (value.empty()) throw UserError("--data: expected a value");
    if (!data.empty()) throw UserError("--data is given twice");
    data = value;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(taken));
  }
  return data.empty() ? find_data() : data;
}

void check_data(const std::string& data) {
  std::error_code failed;
  if (!std::filesystem::is_directory(std::filesystem::path(data) / "topology", failed))
    throw UserError({{data, 0, "", "has no folder topology/; --data DIR names one that has"}});
}

int run(std::vector<std::string> words) {
  const std::string data = take_data(words);
  if (words.empty() || words.front() == "--help" || words.front() == "-h" ||
      words.front() == "help") {
    print_help();
    return words.empty() ? exit_code::input : exit_code::yes;
  }
  if (words.front() == "--version") {
    fmt::print("stepsim {}\n", STEPSIM_VERSION);
    return exit_code::yes;
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    names.emplace_back(command.name);
    if (command.name != words.front()) continue;
    // Help needs no data.
    const bool help = std::find(words.begin(), words.end(), "--help") != words.end();
    if (!help) check_data(data);
    return command.run({data, std::span(words).subspan(1)});
  }
  if (words.front().starts_with('-'))
    throw UserError(fmt::format(
        "unknown option {}{}", words.front(),
        did_you_mean(words.front(), std::array<std::string, 3>{"--help", "--data", "--version"})));
  throw UserError(fmt::format("no command \"{}\"{}; `stepsim --help` lists them", words.front(),
                              did_you_mean(words.front(), names)));
}

// Without fmt, which throws when stderr is closed or full: there is nobody left to tell then.
void complain(const std::string& text) {
  std::fputs(("stepsim: " + text + "\n").c_str(), stderr);
}

// A reader that went away knows that it did; a full disk behind stdout is worth a message.
int output_failed(int why) {
  if (why != EPIPE)
    complain(fmt::format("the output could not be written: {}", std::strerror(why)));
  return exit_code::input;
}

// No bug of ours: processes, open files or memory have run out.
bool is_shortage(const std::error_code& code) {
  return code == std::errc::resource_unavailable_try_again ||
         code == std::errc::too_many_files_open ||
         code == std::errc::too_many_files_open_in_system || code == std::errc::not_enough_memory;
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  using namespace stepsim;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write(), and not the end
  try {
    const int code = run({argv + std::min(argc, 1), argv + argc});
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return output_failed(errno);
    return code;
  } catch (const UserError& error) {
    std::fflush(stdout);
    complain(error.what());
    return exit_code::input;
  } catch (const std::bad_alloc&) {
    complain("this machine has too little memory to compute it");
    return exit_code::input;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return output_failed(error.code().value());
    if (is_shortage(error.code())) {
      complain(
          fmt::format("this machine, or a limit of this shell, allows no more: {}", error.what()));
      return exit_code::input;
    }
    complain(fmt::format("this is a bug of ours: {}", error.what()));
    return exit_code::bug;
  } catch (const std::exception& error) {
    complain(fmt::format("this is a bug of ours: {}", error.what()));
    return exit_code::bug;
  }
}
