// A notebook's code cells are read as one text, and messages name a line by its cell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace stepsim {

// A code cell of a notebook, and where it begins in the text of all of them.
struct CodeCell {
  int number = 0;  // from 1 on, without cells of prose
  int first_line = 0;
};

// The cell that a line of the joined text is in; null where there is none.
const CodeCell* cell_of(const std::vector<CodeCell>& cells, int line);
// Returns the text with each "line 40" of the joined text as "code cell 3, line 7".
std::string with_cells(const std::vector<CodeCell>& cells, std::string_view text);
// Puts the line of a problem into the cell, and so are the lines that its message names.
Problem in_cell(const std::vector<CodeCell>& cells, Problem problem);
// Returns "code cell 3, line 7"; "line 40" where there are no cells.
std::string place_text(const std::vector<CodeCell>& cells, int line);

}  // namespace stepsim
