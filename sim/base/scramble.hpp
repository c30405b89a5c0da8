// One number from another so that any bit of it moves half of the bits (SplitMix64, Steele and
// others 2014).
#pragma once

#include <cstdint>

namespace stepsim {

constexpr std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace stepsim
