// The words of an enumeration are an array in the order of its members. These turn what a file says
// into members.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/config.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {

template <class Enum, std::size_t N>
constexpr std::optional<Enum> member_of(const std::array<std::string_view, N>& words,
                                        std::string_view word) {
  const auto place = std::ranges::find(words, word);
  if (place == words.end()) return std::nullopt;
  return static_cast<Enum>(place - words.begin());
}

// Reads a key that has to be there; after a problem the first member is returned.
template <class Enum, std::size_t N>
Enum read_word(const Table& table, std::string_view key,
               const std::array<std::string_view, N>& words) {
  return member_of<Enum>(words, table.choice(key, texts_of(words))).value_or(Enum{});
}

// Returns what a list at this key says; a word that is none of these is a problem.
template <class Enum, std::size_t N>
std::vector<Enum> read_members(const Table& table, std::string_view key,
                               const std::array<std::string_view, N>& words,
                               const std::vector<std::string>& said) {
  std::vector<Enum> members;
  for (const std::string& word : said) {
    if (const auto member = member_of<Enum>(words, word))
      members.push_back(*member);
    else
      table.problem(key, expected_one_of(texts_of(words), word));
  }
  return members;
}

}  // namespace stepsim
