// This is the Model Context Protocol without pipes and processes: what a line asks for, and the
// lines that answer it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/serve/fence.hpp"
#include "cli/tools.hpp"

namespace stepsim {

// A question for a tool. Its id and its token are JSON, "" where there is none.
struct McpCall {
  std::string id{}, progress_token{};
  const Tool* tool = nullptr;
  std::vector<std::string> words{};
  bool full = false;  // JSON instead of a short text
};

// Says what is to be done about a line.
struct McpHeard {
  std::string reply{};            // to be said at once
  std::optional<McpCall> call{};  // to be computed
  std::string cancelled{};        // the id of a call that nobody waits for any more
};

// `docs`: a folder of pages, which may be missing.
McpHeard hear(const Fence& fence, const std::string& docs, std::string_view line);

// Says that a line was no message.
std::string unreadable_line(std::string_view why);
// Answers a call with what its tool printed, or with why there is nothing.
std::string answer_line(const McpCall& call, const Printed& printed);
std::string failed_line(const McpCall& call, std::string_view why);
// Says how far a call is: `told` is a line "DONE OF WHAT" (cli/progress.hpp). Returns "" where less
// is done than `last`, as in a further round of the same work.
std::string progress_line(const McpCall& call, std::string_view told, double& last);

// A short answer has at most so many bytes.
inline constexpr std::size_t longest_short_answer = 1999;

}  // namespace stepsim
