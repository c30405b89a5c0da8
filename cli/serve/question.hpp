// A question is what the page of `serve` asks: one step or two, and the files that somebody dropped
// on it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/result.hpp"

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

// A name without a path, of a kind of file that is read as settings.
bool may_be_posted(std::string_view name);

}  // namespace stepsim
