// A tool is a command as programs ask it: its words have names, and what it prints is caught. The
// routes of `serve` and the tools of `mcp` are made of these.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/result.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

struct Tool {
  std::string_view name;
  int (*run)(const CommandLine&);
  std::string_view words;  // names of the arguments without a dash; "..." marks a list
  std::size_t required;    // the first of them have to be there
  std::string_view brief;  // options of a short answer
  std::array<const ResultKind*, 3> kinds;  // of --json
};

std::span<const Tool> all_tools();
// Throws UserError, with the nearest name.
const Tool& tool_of(std::string_view name);

// Holds what a client is told of a tool.
struct ToolUsage {
  std::string summary;  // in a sentence or two
  std::string schema;   // JSON Schema of its arguments
};
// Writes this of a command: its summary, how it is called, and properties of the schema for its
// options, each of the three in a line.
std::string tool_usage_text(const Usage& usage);
// Reads what the command itself says of its options. `own`: further properties, each as JSON and
// with a comma behind it.
ToolUsage usage_of(const Tool& tool, std::string_view own = "");

// Returns the arguments as words of a command line. Throws UserError on what no tool takes: what
// writes files, or says how an answer is printed.
std::vector<std::string> words_of(const Tool& tool, const Table& arguments,
                                  std::span<const std::string_view> own);

// Refuses words that name a path which leads out of these folders. `advice` stands behind the
// message.
void require_inside(std::span<const std::string> words, std::span<const std::string> folders,
                    std::string_view advice);
bool is_within(const std::filesystem::path& path, std::span<const std::string> folders);
// Looks at the words of YAML, too. A backslash could write any other letter, so none is taken.
bool names_path_outside(std::span<const std::string> folders, std::string_view value);

// Holds what a command printed.
struct Printed {
  int code = 0;
  std::string out{}, err{};
};
// Makes standard input empty: a question of somebody else may not read it.
void take_no_input();
// Catches what `act` prints, and what it throws as main() would tell it.
Printed caught(const std::function<int()>& act);
Printed answer_of(const Tool& tool, const Catalogue& data, std::vector<std::string> words);

// Returns what went wrong, without the name of the program in front.
std::string complaint_of(const Printed& printed);

}  // namespace stepsim
