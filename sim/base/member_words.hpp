// The members of an enumeration as words: where files and screens say what the code says, the
// enumeration itself is the list.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace stepsim {

// Returns what the member is called: "gemm" of Cause::gemm.
template <auto Member>
consteval std::string_view member_word() {
  constexpr std::string_view mark = "Member = ";
  std::string_view word =
      __PRETTY_FUNCTION__;  // "... [with auto Member = stepsim::Cause::gemm; ..."
  word.remove_prefix(word.find(mark) + mark.size());
  word = word.substr(0, word.find_first_of(";]"));
  return word.substr(word.rfind(':') + 1);
}

// Returns the words of all members from the first one to this one, none of which has a number of
// its own.
template <auto Last>
consteval auto words_through() {
  return []<std::size_t... Places>(std::index_sequence<Places...>) {
    return std::array{member_word<static_cast<decltype(Last)>(Places)>()...};
  }(std::make_index_sequence<static_cast<std::size_t>(Last) + 1>());
}

}  // namespace stepsim
