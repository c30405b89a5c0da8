#include "sim/base/letters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace stepsim {

std::string in_small_letters(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = small_letter(letter);
  return result;
}

namespace {

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Bytes of the character that begins here; 0: none does.
std::size_t length_of_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!continues(text[i])) return 0;
  if (length < 3) return length;
  // Neither longer than it has to be, nor half of a pair, nor beyond the last.
  const auto second = static_cast<unsigned char>(text[1]);
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return wrong ? 0 : length;
}

// Returns the code of the character that begins here and has so many bytes.
char32_t code_of(std::string_view text, std::size_t length) {
  const auto first = static_cast<unsigned char>(text.front());
  char32_t code = length == 1 ? first : first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i)
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  return code;
}

// These are not seen: control characters, ends of lines and paragraphs, what Unicode 15 lists as
// Default_Ignorable_Code_Point (DerivedCoreProperties.txt), marks of direction and tags among it,
// and format characters that nothing shows.
constexpr auto unseen = std::to_array<std::pair<char32_t, char32_t>>({
    {0x0000, 0x001F},   {0x007F, 0x009F},   {0x00AD, 0x00AD},   {0x034F, 0x034F},
    {0x061C, 0x061C},   {0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},
    {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},   {0x3164, 0x3164},
    {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},
    {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
});

bool is_seen(char32_t code) {
  const auto* const range =
      std::ranges::lower_bound(unseen, code, {}, &std::pair<char32_t, char32_t>::second);
  return range == unseen.end() || code < range->first;
}

enum class Escapes : std::uint8_t { of_text, of_json };

std::string escape_of(char32_t code, Escapes form) {
  const auto number = static_cast<std::uint32_t>(code);
  if (number < 0x10000) return fmt::format("\\u{:04x}", number);
  if (form == Escapes::of_text) return fmt::format("\\U{:08x}", number);
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (number >> 10), 0xDC00 + (number & 0x3FF));
}

// Escapes what is not seen, except what `stays` lists.
std::string with_escapes(std::string_view text, std::string_view stays, Escapes form) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    const char32_t code = length == 0 ? 0 : code_of(text, length);
    if (length == 0 && form == Escapes::of_text)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    else if (length == 0)
      result += "\xEF\xBF\xBD";
    else if (is_seen(code) || stays.find(text.front()) != std::string_view::npos)
      result += text.substr(0, length);
    else
      result += escape_of(code, form);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  return with_escapes(text, "\n\t", Escapes::of_text);
}

std::string on_one_line(std::string_view text) {
  return with_escapes(text, "", Escapes::of_text);
}

std::string json_escaped(std::string_view text) {
  std::string marked;
  for (const char c : text) {
    if (c == '"' || c == '\\') marked += '\\';
    marked += c;
  }
  return with_escapes(marked, "", Escapes::of_json);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(separator, from), text.size());
    parts.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

std::vector<std::string_view> lines_in(std::string_view text) {
  std::vector<std::string_view> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

std::string yaml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return on_one_line(result) + '"';
}

}  // namespace stepsim
