// Texts in command lines that are printed for a shell.
#pragma once

#include <string>

namespace stepsim {

// Quotes the text so that a shell takes it for one word.
std::string shell_word(const std::string& text);

}  // namespace stepsim
