// Texts with mistakes, the same on every machine.
#pragma once

#include <string>

#include "tests/support/dice.hpp"

namespace stepsim {

// Returns the text with up to six changes: letters of `letters` put in or exchanged, parts cut out
// or put in again.
std::string with_mistakes(const std::string& text, const std::string& letters, Dice& dice);

}  // namespace stepsim
