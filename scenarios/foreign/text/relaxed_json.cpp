#include "scenarios/foreign/text/relaxed_json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// The place behind the text in quotes that begins at `from`.
std::size_t behind_quotes(std::string_view text, std::size_t from) {
  for (std::size_t i = from + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  return text.size();
}

bool is_number(std::string_view word) {
  double value = 0;
  const char* end = word.data() + word.size();
  const auto [last, error] = std::from_chars(word.data(), end, value);
  return error == std::errc{} && last == end && std::isfinite(value);
}

}  // namespace

std::string with_bare_numbers(std::string text) {
  for (std::size_t i = text.find('"'); i != std::string::npos;) {
    const std::size_t end = behind_quotes(text, i);
    const std::size_t next = text.find_first_not_of(" \t\r\n", end);
    const bool names = next != std::string::npos && text[next] == ':';
    if (!names && end - i > 2 && is_number(std::string_view(text).substr(i + 1, end - i - 2)))
      text[i] = text[end - 1] = ' ';
    i = text.find('"', end);
  }
  return text;
}

std::string without_comments(std::string text, const std::string& file) {
  const auto blank = [&](std::size_t from, std::size_t to) {
    std::replace_if(
        text.begin() + static_cast<std::ptrdiff_t>(from),
        text.begin() + static_cast<std::ptrdiff_t>(to), [](char c) { return c != '\n'; }, ' ');
    return to;
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with('"')) {
      i = behind_quotes(text, i);
    } else if (rest.starts_with('#') || rest.starts_with("//")) {
      i = blank(i, std::min(text.find('\n', i), text.size()));
    } else if (rest.starts_with("/*")) {
      const std::size_t end = text.find("*/", i + 2);
      if (end == std::string::npos) {
        const auto line =
            std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n');
        throw UserError({{file, static_cast<int>(line) + 1, "", "a comment is never closed"}});
      }
      i = blank(i, end + 2);
    } else {
      ++i;
    }
  }
  return text;
}

}  // namespace stepsim
