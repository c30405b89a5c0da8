#include "scenarios/foreign/launch/file_variables.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr int most_in_one_another = 8;

// These words stand between "${" and "}".
struct VariableWords {
  std::string name;
  std::optional<std::string> otherwise{};
};

bool is_variable(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) && std::ranges::all_of(name, [](char c) {
    return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

std::string trimmed_word(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

std::string without_quotes(std::string text) {
  const bool quoted = text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Reads OmegaConf's way and the shell's; nothing for what is neither.
std::optional<VariableWords> variable_in(std::string_view inside) {
  for (const std::string_view resolver : {"oc.env:", "env:"}) {
    if (!inside.starts_with(resolver)) continue;
    inside.remove_prefix(resolver.size());
    const std::size_t comma = inside.find(',');
    VariableWords words{trimmed_word(inside.substr(0, comma))};
    if (comma != std::string_view::npos)
      words.otherwise = without_quotes(trimmed_word(inside.substr(comma + 1)));
    return is_variable(words.name) ? std::optional(words) : std::nullopt;
  }
  const std::size_t sign = std::min(inside.find(":-"), inside.find('-'));
  VariableWords words{std::string(inside.substr(0, sign))};
  if (sign != std::string_view::npos)
    words.otherwise =
        without_quotes(std::string(inside.substr(sign + (inside[sign] == ':' ? 2 : 1))));
  return is_variable(words.name) ? std::optional(words) : std::nullopt;
}

// Returns the place of the bracket that closes the one at `from`; npos: none does, or none that is
// near, so that a text full of brackets takes no longer than any other.
std::size_t closing_brace(std::string_view text, std::size_t from) {
  constexpr std::size_t near = 500;
  int depth = 0;
  for (std::size_t i = from; i < std::min(text.size(), from + near); ++i)
    if (text[i] == '{')
      ++depth;
    else if (text[i] == '}' && --depth == 0)
      return i;
  return std::string_view::npos;
}

std::string with_defaults(const std::string& text, int level = 0) {
  if (level > most_in_one_another) return text;
  std::string result;
  std::size_t at = 0;
  for (std::size_t begin = text.find("${"); begin != std::string::npos;
       begin = text.find("${", at)) {
    const std::size_t end = closing_brace(text, begin + 1);
    if (end == std::string::npos) break;
    result += text.substr(at, begin - at);
    const auto variable = variable_in(std::string_view(text).substr(begin + 2, end - begin - 2));
    result += variable && variable->otherwise ? with_defaults(*variable->otherwise, level + 1)
                                              : text.substr(begin, end + 1 - begin);
    at = end + 1;
  }
  return result + text.substr(at);
}

}  // namespace

std::vector<FileVariable> settle_variables(Document& document) {
  std::vector<FileVariable> settled;
  document.replace_texts([&](const std::string& path, const std::string& text) {
    if (text.find("${") == std::string::npos) return text;
    std::string value = with_defaults(text);
    if (value != text) settled.push_back({path, text, value});
    return value;
  });
  return settled;
}

std::string variable_without_value(const Table& root, const std::string& value) {
  for (std::size_t begin = value.find("${"); begin != std::string::npos;
       begin = value.find("${", begin + 1)) {
    const std::size_t end = closing_brace(value, begin + 1);
    if (end == std::string::npos) break;
    const std::string_view inside = std::string_view(value).substr(begin + 2, end - begin - 2);
    const auto variable = variable_in(inside);
    if (variable && !variable->otherwise &&
        (inside.size() > variable->name.size() || (!root.has(inside) && !root.is_mapping(inside))))
      return variable->name;
  }
  return "";
}

}  // namespace stepsim
