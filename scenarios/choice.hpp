// A word of a scenario as the enumerator it names.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/config.hpp"

namespace stepsim {

template <class Enum, std::size_t N>
Enum choice(const Table& table, std::string_view key, const std::array<std::string_view, N>& names,
            Enum fallback) {
  if (!table.has(key)) return fallback;
  const std::vector<std::string> words(names.begin(), names.end());
  const std::string word = table.choice(key, words);
  const auto place = std::find(words.begin(), words.end(), word);
  return place == words.end() ? fallback : static_cast<Enum>(place - words.begin());
}

}  // namespace stepsim
