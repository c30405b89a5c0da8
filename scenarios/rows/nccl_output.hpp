// This reads what nccl-tests and rccl-tests print, as rows of measured collectives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/rows/measured.hpp"

namespace stepsim {

// Told by its first lines, or by the names of its columns.
bool is_nccl_output(std::string_view text);

// Reads one row for each size, by the times out of place. The collective is the one that the output
// names, else the one in the file's name ("all_reduce.txt"). Throws UserError when neither says
// one, when no line holds a size and times, or when a line of them is cut short.
std::vector<MeasuredCollective> read_nccl_output(std::string_view text, const std::string& file);

// Reads either kind of file: this, or a table. It is known of this where it was measured when
// `machine`, a node of the catalogue, is not empty.
std::vector<MeasuredCollective> read_collectives(const std::string& file,
                                                 const std::string& machine);

}  // namespace stepsim
