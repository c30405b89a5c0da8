#include "scenarios/rows/cells.hpp"

#include <fmt/format.h>

#include <charconv>

namespace stepsim {

Cell number_in(std::string_view cell, std::string_view column,
               std::vector<std::string>& unreadable) {
  constexpr double largest = 1e15;
  if (cell.empty()) return std::nullopt;
  double value = 0;
  const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error == std::errc() && rest == cell.data() + cell.size() && value >= 0 && value < largest)
    return value;
  unreadable.push_back(fmt::format("{}: expected a number, found \"{}\"", column, cell));
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string id_of(const CsvTable& table, const CsvTable::Row& row) {
  std::string id(trimmed(table.cell(row, "id")));
  return id.empty() ? fmt::format("line {}", row.line) : id;
}

std::vector<std::string> listed_in(std::string_view cell) {
  constexpr std::string_view between = " | ";
  std::vector<std::string> parts;
  for (cell = trimmed(cell); !cell.empty();) {
    const std::size_t end = cell.find(between);
    parts.emplace_back(cell.substr(0, end));
    cell.remove_prefix(end == std::string_view::npos ? cell.size() : end + between.size());
  }
  return parts;
}

std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text)
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
  return result + '"';
}

}  // namespace stepsim
