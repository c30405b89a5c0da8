// Texts of files that people did not write: names there may have megabytes.
#pragma once

#include <string>
#include <string_view>

namespace stepsim {

// The text, every letter of it seen and no line of it unindented but the first, or its two ends
// where it is longer than anybody reads.
std::string readable(std::string_view text);

}  // namespace stepsim
