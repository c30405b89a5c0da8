#include "scenarios/rows/row_words.hpp"

#include <algorithm>
#include <array>

#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {

RowWords words_of(const StepRow& row) {
  return {in_small_letters(row.strategy),      in_small_letters(row.offload),
          in_small_letters(row.checkpointing), in_small_letters(row.precision),
          in_small_letters(row.optimizer),     in_small_letters(row.task),
          in_small_letters(row.framework),     in_small_letters(row.compile),
          in_small_letters(row.notes)};
}

bool says(std::string_view text, std::string_view word) {
  constexpr std::array<std::string_view, 3> denials{"no ", "not ", "without "};
  for (std::size_t place = text.find(word); place != std::string_view::npos;
       place = text.find(word, place + 1)) {
    const std::string_view before = text.substr(0, place);
    if (std::ranges::none_of(denials,
                             [&](std::string_view denial) { return before.ends_with(denial); }))
      return true;
  }
  return false;
}

bool says_no(std::string_view cell) {
  constexpr std::array<std::string_view, 8> words{"no", "none", "off", "false",
                                                  "-",  "n/a",  "na",  "not stated"};
  return holds(words, cell) || cell.starts_with("no ") || cell.starts_with("none ");
}

bool is_fsdp(const RowWords& words) {
  return contains(words.strategy, "fsdp") || contains(words.strategy, "hsdp") ||
         (contains(words.framework, "fsdp") && !contains(words.strategy, "ddp"));
}

}  // namespace stepsim
