// A question is what the page of `serve` asks: one step or two, and the files that somebody dropped
// on it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/result.hpp"
#include "cli/tools.hpp"

namespace stepsim {

struct PostedFile {
  std::string name, text;
};

struct Question {
  std::vector<PostedFile> files{};
  std::optional<AskedScenario> a{}, b{};
  bool interval = false;
};

// Reads a question from JSON, with the same reader as every other file. Throws UserError with every
// problem.
Question read_question(std::string_view json);

// Holds what a program asks of a route: files, and the words of a command.
struct ToolQuestion {
  std::vector<PostedFile> files{};
  std::vector<std::string> words{};
};
ToolQuestion read_tool_question(const Tool& tool, std::string_view json);

// A name without a path, of a kind of file that is read.
bool may_be_posted(std::string_view name);

}  // namespace stepsim
