// These functions read whole numbers, and lists of them, as people write them in options and files.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stepsim {

// Throws UserError, whose message begins with `key`.
std::uint32_t parse_count(std::string_view key, std::string_view text, std::uint32_t low,
                          std::uint32_t high);
// Reads "0,1,4-7" as 0 1 4 5 6 7; `what` is what messages call the numbers: "ranks".
std::vector<std::uint32_t> parse_numbers(std::string_view key, std::string_view what,
                                         std::string_view text);

}  // namespace stepsim
