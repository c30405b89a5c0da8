#include "sim/base/letters.hpp"

namespace stepsim {

std::string in_small_letters(std::string_view text) {
  std::string result(text);
  for (char& letter : result)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return result;
}

}  // namespace stepsim
