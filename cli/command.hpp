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

struct Command {
  std::string_view name;
  int (*run)(const CommandLine&);
};

int run_command(const CommandLine& line);
int memory_command(const CommandLine& line);
int sweep_command(const CommandLine& line);
int plan_command(const CommandLine& line);
int merge_command(const CommandLine& line);
int anchor_command(const CommandLine& line);
int diagnose_command(const CommandLine& line);
int explain_command(const CommandLine& line);
int diff_command(const CommandLine& line);
int together_command(const CommandLine& line);
int check_command(const CommandLine& line);
int validate_command(const CommandLine& line);
int kernels_command(const CommandLine& line);
int report_command(const CommandLine& line);
int serve_command(const CommandLine& line);
int export_command(const CommandLine& line);
int collective_command(const CommandLine& line);
int mcp_command(const CommandLine& line);
int list_command(const CommandLine& line);
int show_command(const CommandLine& line);

// Returns what `list` can be asked for.
std::vector<std::string> catalogue_lists();

// `import` writes a file of another program as a scenario to go on with.
int import_command(const CommandLine& line);

}  // namespace stepsim
