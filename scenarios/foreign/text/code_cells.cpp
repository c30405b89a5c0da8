#include "scenarios/foreign/text/code_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/letters.hpp"

namespace stepsim {

const CodeCell* cell_of(const std::vector<CodeCell>& cells, int line) {
  const auto behind =
      std::upper_bound(cells.begin(), cells.end(), line,
                       [](int wanted, const CodeCell& cell) { return wanted < cell.first_line; });
  return line < 1 || behind == cells.begin() ? nullptr : &*(behind - 1);
}

std::string place_text(const std::vector<CodeCell>& cells, int line) {
  const CodeCell* cell = cell_of(cells, line);
  return cell == nullptr
             ? fmt::format("line {}", line)
             : fmt::format("code cell {}, line {}", cell->number, line - cell->first_line + 1);
}

std::string with_cells(const std::vector<CodeCell>& cells, std::string_view text) {
  if (cells.empty()) return std::string(text);
  constexpr std::string_view one = "line ", several = "lines ", join = " and ";
  const auto is_number = [&](std::size_t at) { return at < text.size() && is_digit(text[at]); };
  std::string result;
  std::size_t at = 0;
  // Takes the number that stands here.
  const auto take = [&] {
    int line = 0;
    const char* end = std::from_chars(text.data() + at, text.data() + text.size(), line).ptr;
    at = static_cast<std::size_t>(end - text.data());
    result += place_text(cells, line);
  };
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const std::size_t word = rest.starts_with(one)       ? one.size()
                             : rest.starts_with(several) ? several.size()
                                                         : 0;
    if (word == 0 || !is_number(at + word) || (at > 0 && is_letter_or_digit(text[at - 1]))) {
      result += text[at++];
      continue;
    }
    at += word;
    take();
    if (word == several.size() && text.substr(at).starts_with(join) &&
        is_number(at + join.size())) {
      result += join;
      at += join.size();
      take();
    }
  }
  return result;
}

Problem in_cell(const std::vector<CodeCell>& cells, Problem problem) {
  if (cells.empty()) return problem;
  problem.message = with_cells(cells, problem.message);
  const CodeCell* cell = cell_of(cells, problem.line);
  if (cell == nullptr) return problem;
  problem.file = fmt::format("{}, code cell {}", problem.file, cell->number);
  problem.line -= cell->first_line - 1;
  return problem;
}

}  // namespace stepsim
