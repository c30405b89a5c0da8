#include "scenarios/keys/key.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stepsim {

std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  const std::size_t digits = text.find_last_not_of('0') + 1;
  const std::size_t zeros = text.size() - digits;
  constexpr std::size_t many = 5;
  const bool whole = text.find_first_not_of("0123456789") == std::string::npos;
  return whole && digits > 0 && zeros >= many ? fmt::format("{}e{}", text.substr(0, digits), zeros)
                                              : text;
}

KeyFacts facts_in(const Table& table, std::string_view block, const KeyFacts& facts,
                  const RenameNotes* renames) {
  if (facts.formerly.empty() || !table.has(facts.formerly)) return facts;
  if (table.has(facts.name)) {
    table.problem(facts.formerly,
                  fmt::format("is an older name of {}, which is there as well", facts.name));
    return facts;
  }
  if (renames != nullptr) {
    const std::string path =
        fmt::format("{}{}{}", renames->subject, block.empty() ? "" : ".", block);
    renames->notes.push_back(
        fmt::format("{0}.{1} is {0}.{2} now", path, facts.formerly, facts.name));
  }
  KeyFacts as_written = facts;
  as_written.name = facts.formerly;
  return as_written;
}

namespace detail {

std::size_t word_index(const Table& table, const KeyFacts& facts, std::size_t fallback) {
  if (!facts.required && !table.has(facts.name)) return fallback;
  const std::vector<std::string> words(facts.words.begin(), facts.words.end());
  const std::string word = table.choice(facts.name, words);
  const auto place = std::ranges::find(words, word);
  return place == words.end() ? fallback : static_cast<std::size_t>(place - words.begin());
}

std::string set_number_text(const KeyFacts& facts, double value) {
  return value < facts.low ? "" : number_text(value);
}

}  // namespace detail
}  // namespace stepsim
