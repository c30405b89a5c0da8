// Numbers that look random and are the same on every machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace stepsim {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  // 0 .. sides - 1
  std::uint32_t roll(std::uint32_t sides) {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return static_cast<std::uint32_t>((x ^ (x >> 31)) % sides);
  }

  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::uint32_t left = static_cast<std::uint32_t>(values.size()); left > 1; --left)
      std::swap(values[left - 1], values[roll(left)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace stepsim
