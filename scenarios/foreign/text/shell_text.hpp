// Text of a shell script, each letter with the line that it stands in: words that a script puts
// together out of variables and arrays keep the places of their parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

struct Letter {
  char c = 0;
  int line = 0;
  int unknown = -1;  // at least 0: something that only a run would know stands here, by its number
};

using ShellText = std::vector<Letter>;

ShellText shell_text(std::string_view text, int line);  // newlines in it count lines
std::string plain(const ShellText& text);               // without what is not known

// A file that is read as one of these may be so large.
inline constexpr std::size_t largest_script = 1u << 20;

}  // namespace stepsim
