// These know letters and digits of ASCII, the same in every locale.
#pragma once

#include <charconv>
#include <optional>
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

// Returns the text with its ASCII capitals made small, to compare words without regard to case.
std::string in_small_letters(std::string_view text);

// Returns the text as a person may be shown it, wherever it came from: what is no UTF-8, what no
// letter can be seen of, and what moves the cursor or turns the direction of writing becomes an
// escape such as \xff, \u001b or \U000e0001. Ends of lines and tabs stay. Shown again it is the
// same.
std::string printable(std::string_view text);
// Does the same for what has one line: ends of lines and tabs become escapes, too.
std::string on_one_line(std::string_view text);
// Returns what has to stand between quotes of JSON to be read back as this text; what is no UTF-8,
// as names of files may be, becomes U+FFFD.
std::string json_escaped(std::string_view text);

// Returns the number that the whole text is; nothing where it is none.
template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number value{};
  const auto [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns what stands between the separators: one part more than there are of them.
std::vector<std::string_view> split(std::string_view text, char separator);
// Returns the lines of a file: the end of the last begins no other.
std::vector<std::string_view> lines_in(std::string_view text);

// A text as YAML that reads back as this text.
std::string yaml_quoted(std::string_view text);

// Returns the text with every letter of it seen and no line of it unindented but the first; where
// it is longer than anybody reads, only its two ends.
std::string readable(std::string_view text);

}  // namespace stepsim
