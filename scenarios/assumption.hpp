// An assumption is what a file does not hold, so that it was taken from elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace stepsim {

// A comparison of packed and other rows hangs on this assumption.
inline constexpr std::string_view length_of_rows = "length of rows";

// These are taken as a measured run has them.
inline constexpr std::string_view anchored_constants = "constants";

struct Assumption {
  std::string what;    // "machine"
  std::string taken;   // "mi300x-8"
  std::string why;     // "the file is called 8xMI300"
  std::string change;  // "--cluster NAME"
};

}  // namespace stepsim
