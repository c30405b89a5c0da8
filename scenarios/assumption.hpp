// What a file does not hold, so that it was taken from elsewhere.
#pragma once

#include <string>

namespace stepsim {

struct Assumption {
  std::string what;    // "machine"
  std::string taken;   // "mi300x-8"
  std::string why;     // "the file is called 8xMI300"
  std::string change;  // "--cluster NAME"
};

}  // namespace stepsim
