// Texts of files that people did not write: names there may have megabytes.
#pragma once

#include <string>
#include <string_view>

namespace stepsim {

// Returns the text with every letter of it seen and no line of it unindented but the first; where
// it is longer than anybody reads, only its two ends.
std::string readable(std::string_view text);

}  // namespace stepsim
