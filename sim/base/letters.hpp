// Letters and digits of ASCII, the same in every locale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_letter_or_digit(char c) {
  return is_letter(c) || is_digit(c);
}
constexpr bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
constexpr char small_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Without regard to their size.
std::string in_small_letters(std::string_view text);

// Names of files may be any bytes: what is no UTF-8 becomes U+FFFD.
std::string as_utf8(std::string_view text);

// What stands between the separators: one part more than there are of them.
std::vector<std::string_view> split(std::string_view text, char separator);
// The lines of a file: the end of the last begins no other.
std::vector<std::string_view> lines_in(std::string_view text);

}  // namespace stepsim
