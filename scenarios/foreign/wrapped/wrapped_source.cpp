#include "scenarios/foreign/wrapped/wrapped_source.hpp"

#include <algorithm>

namespace stepsim {

bool is_list(const Table& table, std::string_view key) {
  return table.has(key) && table.one_line(key).starts_with('[');
}

bool is_text(const Table& table, std::string_view key) {
  return table.has(key) && !is_list(table, key) && !table.is_mapping(key);
}

std::string in_line(int line, std::string_view text) {
  return std::string(static_cast<std::size_t>(std::max(line - 1, 0)), '\n') + std::string(text);
}

std::string shell_quoted(std::string_view word) {
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace stepsim
