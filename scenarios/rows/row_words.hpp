// These are the words that the cells of a row say, in small letters, and how people say no.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/rows/step_row.hpp"

namespace stepsim {

struct RowWords {
  std::string strategy, offload, checkpointing, precision, optimizer, task, framework, compile,
      notes;
};

RowWords words_of(const StepRow& row);

// The word is there, and what stands before it does not deny it: "no", "not", "without".
bool says(std::string_view text, std::string_view word);
// Returns whether the cell says "none", "no ...", "off", "false", "-", "n/a" or "not stated".
bool says_no(std::string_view cell);
// Parameters are sharded by PyTorch, by the strategy's word or the framework's.
bool is_fsdp(const RowWords& words);

}  // namespace stepsim
