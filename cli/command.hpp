// A Command is what main() knows of a subcommand.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/catalog.hpp"

namespace stepsim {

namespace exit_code {
inline constexpr int yes = 0;    // done, fits, holds
inline constexpr int no = 1;     // the answer is no
inline constexpr int input = 2;  // the user's input is wrong
inline constexpr int bug = 3;    // ours
}  // namespace exit_code

struct CommandLine {
  Catalogue data;
  std::span<const std::string> words;
};

// Returns the exit code.
using RunCommand = int(const CommandLine& line);

struct Command {
  std::string_view name;
  RunCommand* run;
};

RunCommand run_command, memory_command, sweep_command, plan_command, merge_command, anchor_command,
    diagnose_command, explain_command, diff_command, together_command, check_command,
    validate_command, kernels_command, report_command, serve_command, export_command,
    collective_command, mcp_command, list_command, show_command, import_command;

// Returns what `list` can be asked for.
std::vector<std::string> catalogue_lists();

}  // namespace stepsim
