// `collective --compare` prints predictions beside a table of measured rows.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/options.hpp"
#include "scenarios/rows/measured.hpp"

namespace stepsim {

// The notes about the rows of a.csv are in a-notes.csv, if somebody wrote any.
std::vector<RowNote> notes_beside(const std::string& file,
                                  std::span<const MeasuredCollective> rows);

int compare_command(const CommandLine& line, const Options& options);

}  // namespace stepsim
