#include "scenarios/foreign/text/shell_text.hpp"

namespace stepsim {

ShellText shell_text(std::string_view text, int line) {
  ShellText result;
  result.reserve(text.size());
  for (const char c : text) {
    result.push_back({c, line});
    if (c == '\n') ++line;
  }
  return result;
}

std::string plain(const ShellText& text) {
  std::string result;
  for (const Letter& letter : text)
    if (letter.unknown < 0) result += letter.c;
  return result;
}

}  // namespace stepsim
