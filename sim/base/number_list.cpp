#include "sim/base/number_list.hpp"

#include <fmt/format.h>

#include <charconv>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {

std::uint32_t parse_count(std::string_view key, std::string_view text, std::uint32_t low,
                          std::uint32_t high) {
  std::uint32_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = rest == text.data() + text.size() && !text.empty() &&
                      (error == std::errc() || error == std::errc::result_out_of_range);
  if (!number) throw UserError(fmt::format("{}: expected a whole number, found \"{}\"", key, text));
  if (error != std::errc() || value < low || value > high)
    throw UserError(fmt::format("{}: expected {} to {}, found {}", key, low, high, text));
  return value;
}

std::vector<std::uint32_t> parse_numbers(std::string_view key, std::string_view what,
                                         std::string_view text) {
  constexpr std::uint32_t highest = 1u << 20;
  std::vector<std::uint32_t> numbers;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, '-');
    const bool pair = ends.size() <= 2 && !ends.front().empty() && !ends.back().empty();
    if (!pair)
      throw UserError(
          fmt::format("{}: expected {} such as 0,1 or 0-7, found \"{}\"", key, what, part));
    const std::uint32_t first = parse_count(key, ends.front(), 0, highest);
    const std::uint32_t last = parse_count(key, ends.back(), 0, highest);
    if (last < first)
      throw UserError(
          fmt::format("{}: \"{}\" runs backwards; write {}-{}", key, part, last, first));
    for (std::uint32_t number = first; number <= last; ++number) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace stepsim
