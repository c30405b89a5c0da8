#include "sim/base/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Code points, so that a micro sign takes one column.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool to_the_right(const std::string& column) {
  return column.starts_with(' ');
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<std::string>& columns,
                    const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += "  ";
    const std::string gap(widths[i] - width_of(cells[i]), ' ');
    line += to_the_right(columns[i]) ? gap + cells[i] : cells[i] + gap;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

constexpr std::size_t narrowest_words = 12;  // a column of them gets no narrower

// Returns for every column what its widest cell takes.
std::vector<std::size_t> widths_of(const TextTable& table, const std::vector<std::string>& header) {
  std::vector<std::size_t> widths = mapped(header, width_of);
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  return widths;
}

// Returns the width of the longest word of a column, which a narrower column would not hold.
std::size_t longest_word(const TextTable& table, std::size_t column) {
  std::size_t longest = narrowest_words;
  for (const auto& row : table.rows)
    for (const std::string_view word : split(row[column], ' '))
      longest = std::max(longest, width_of(word));
  return longest;
}

// Takes from the widest column of words, again and again, until the sum is `width`.
void narrow(std::vector<std::size_t>& widths, const TextTable& table, std::size_t width) {
  std::size_t sum = 2 * (widths.size() - 1);
  for (const std::size_t each : widths) sum += each;
  if (sum <= width) return;
  std::vector<std::size_t> least(widths.size(), std::numeric_limits<std::size_t>::max());
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (!to_the_right(table.columns[i])) least[i] = longest_word(table, i);
  for (; sum > width; --sum) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (widths[i] > least[i] && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
    if (widest == nullptr) return;
    --*widest;
  }
}

using RowInLines = std::vector<std::vector<std::string>>;  // of each cell its lines

RowInLines in_lines(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) {
  RowInLines cells;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string cell = width_of(row[i]) > widths[i] ? wrap(row[i], widths[i], 0) : row[i];
    const auto lines = split(cell, '\n');
    cells.emplace_back(lines.begin(), lines.end());
  }
  return cells;
}

// A word that is longer than its column makes that wider in all rows.
void widen_columns(std::vector<std::size_t>& widths, const RowInLines& row) {
  for (std::size_t i = 0; i < row.size(); ++i)
    for (const std::string& line : row[i]) widths[i] = std::max(widths[i], width_of(line));
}

std::string row_text(const RowInLines& row, const std::vector<std::string>& columns,
                     const std::vector<std::size_t>& widths) {
  std::size_t height = 1;
  for (const std::vector<std::string>& cell : row) height = std::max(height, cell.size());
  std::string text;
  for (std::size_t line = 0; line < height; ++line)
    text += line_of(mapped(row,
                           [&](const std::vector<std::string>& cell) {
                             return line < cell.size() ? cell[line] : std::string();
                           }),
                    columns, widths);
  return text;
}

}  // namespace

std::string render(const TextTable& table) {
  return render(table, std::numeric_limits<std::size_t>::max());
}

std::string render(const TextTable& given, std::size_t width) {
  TextTable table = given;
  for (auto& row : table.rows) row = mapped(row, printable);  // as wide as they are shown
  const std::vector<std::string> header = mapped(
      table.columns, [](const std::string& column) { return column.substr(to_the_right(column)); });
  std::vector<std::size_t> widths = widths_of(table, header);
  narrow(widths, table, width);
  std::vector<RowInLines> rows{in_lines(header, widths)};
  for (const auto& row : table.rows) rows.push_back(in_lines(row, widths));
  for (const RowInLines& row : rows) widen_columns(widths, row);
  const auto rule = mapped(widths, [](std::size_t each) { return std::string(each, '-'); });
  std::string text =
      row_text(rows.front(), table.columns, widths) + line_of(rule, table.columns, widths);
  for (std::size_t i = 1; i < rows.size(); ++i) text += row_text(rows[i], table.columns, widths);
  return text;
}

std::string percent(double share, int digits) {
  const double least = 0.5 * std::pow(10.0, -digits);
  return fmt::format("{:.{}f} %", std::abs(100 * share) < least ? 0.0 : 100 * share, digits);
}

std::string signed_percent(double share, int digits) {
  const std::string text = percent(share, digits);
  const bool sign = text.front() != '-' && text.find_first_of("123456789") != std::string::npos;
  return sign ? "+" + text : text;
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  bool first = true;  // on its line
  for (const std::string_view word : split(text, ' ')) {
    if (!first && column + 1 + width_of(word) > width) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      result += ' ';
      ++column;
    }
    first = false;
    result += word;
    column += width_of(word);
  }
  return result;
}

}  // namespace stepsim
