// This says how far long work is: one line on standard error, and only where a person looks at it.
#pragma once

#include <string_view>

#include "sim/process/worker.hpp"

namespace stepsim {

// Redraws its line whenever a hundredth more is done, or a second has passed, with the time that is
// left; wipes it at the end. Silent when standard error is no terminal.
Progress progress_bar(std::string_view what);
// Writes lines "DONE OF WHAT" to this file from now on, as often, instead of drawing anything.
void tell_progress_to(int file);

// Prints an answer that is there before longer work begins.
void print_at_once(std::string_view text);

}  // namespace stepsim
