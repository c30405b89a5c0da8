// This is the one place that catches: it turns what went wrong into a message and an exit code.
#pragma once

#include <functional>

namespace stepsim {

// Returns what `act` returns. What it throws is told on stderr, and becomes the exit code 2 where
// the user or this machine can mend it, and 3 where that is a bug of ours.
int exit_code_of(const std::function<int()>& act);

}  // namespace stepsim
