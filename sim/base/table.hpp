// These are text tables that align: words to the left, numbers to the right.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

struct TextTable {
  std::vector<std::string> columns;  // "run"; " steps" stands to the right, as numbers do
  std::vector<std::vector<std::string>> rows{};
};

// Writes the table with two spaces between columns, a rule under the header, no trailing blanks,
// every line ended.
std::string render(const TextTable& table);
// Does the same within `width` columns where that can be: words that stand to the left are broken
// at spaces, in the widest column first.
std::string render(const TextTable& table, std::size_t width);

// Writes "12.3 %"; with a sign "+12.3 %". A share that rounds to nothing has no sign.
std::string percent(double share, int digits = 1);
std::string signed_percent(double share, int digits = 1);

// Breaks at spaces so that no line ends behind column `width`. The caller has already moved to
// column `indent`; further lines begin there, too.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace stepsim
