#include "tests/support/mutated_text.hpp"

namespace stepsim {

std::string with_mistakes(const std::string& text, const std::string& letters, Dice& dice) {
  const auto below = [&](std::size_t sides) {
    return std::size_t{dice.roll(static_cast<std::uint32_t>(sides))};
  };
  std::string result = text;
  for (std::size_t change = 1 + below(6); change > 0 && !result.empty(); --change) {
    const std::size_t at = below(result.size());
    const char letter = letters[below(letters.size())];
    switch (below(4)) {
      case 0:
        result.erase(at, 1 + below(12));
        break;
      case 1:
        result.insert(at, 1, letter);
        break;
      case 2:
        result[at] = letter;
        break;
      default:
        result.insert(at, result.substr(below(result.size()), below(30)));
    }
  }
  return result;
}

}  // namespace stepsim
