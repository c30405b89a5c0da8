#include "cli/shell_word.hpp"

#include <algorithm>
#include <string_view>

#include "sim/base/letters.hpp"

namespace stepsim {

std::string shell_word(const std::string& text) {
  const bool plain = std::ranges::all_of(text, [](char c) {
    return is_letter_or_digit(c) || std::string_view("._-/=+:@%,").find(c) != std::string::npos;
  });
  if (plain && !text.empty()) return text;
  std::string quoted = "'";
  for (const char c : text)
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  return quoted + '\'';
}

}  // namespace stepsim
