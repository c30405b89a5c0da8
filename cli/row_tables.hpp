// `validate --rows` prints tables of published training steps beside predictions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace stepsim {

struct RowTablesQuestion {
  std::vector<std::string> files;
  std::uint32_t samples = 0;
  bool json = false;
  bool anchored = false;
  std::string recorded;   // table of errors to be held against; empty: none
  std::string record;     // where to write one
  std::string scenarios;  // folder for the rows as scenario files; empty: none
};
int validate_row_tables(const CommandLine& line, const RowTablesQuestion& question);

}  // namespace stepsim
