#include <fmt/format.h>

#include <array>

#include "cli/sweep_text.hpp"
#include "sim/base/table.hpp"
#include "sim/base/units.hpp"

namespace stepsim {
namespace {

constexpr std::array<std::string_view, 3> search_methods{"bounds", "bisection", "grid"};

std::string_view method_of(const SearchResult& result) {
  return search_methods[static_cast<std::size_t>(result.method)];
}

// A larger value might do as well: the range ended before the condition did.
bool at_end(const Search& search, const SearchResult& result) {
  return search.largest && result.found && *result.found + 1 == result.steps.size();
}

std::string further(const Search& search, const std::string& last) {
  const auto number = parse_quantity(last);
  if (!number || number->dimension != Dimension::ratio || number->value < 1) return "";
  return fmt::format("; --vary {}={:.12g}:{:.12g}:*2 goes on", search.key, number->value,
                     64 * number->value);
}

std::string answer_of(const Search& search, const SearchResult& result, const std::string& last) {
  const std::string question = fmt::format("{} {} such that {}", search.largest ? "max" : "min",
                                           search.key, search.statement.text());
  if (!result.found)
    return fmt::format("{}: none of the {} values tried\n", question, result.steps.size());
  const SearchStep& best = result.steps[*result.found];
  const bool end = at_end(search, result);
  const std::string more = end ? ", where the values end" + further(search, last) : "";
  std::string text = fmt::format("{}: {}{}\n", question, end ? "at least " : "", best.value);
  switch (result.method) {
    case SearchMethod::bounds:
      return text + fmt::format("it holds at every one of {} values up to {}{}\n",
                                result.steps.size(), last, more);
    case SearchMethod::bisection:
      if (end)
        return text + fmt::format("by bisection, {} points; it holds up to {}{}\n",
                                  result.steps.size(), last, more);
      return text + fmt::format("by bisection, {} points\n", result.steps.size());
    case SearchMethod::grid:
      return text +
             fmt::format("it comes and goes, so all {} values were tried\n", result.steps.size());
  }
  return text;
}

RecordList step_list(const Search& search, const SearchResult& result) {
  return list_of(result.steps, [&](const SearchStep& step) {
    return joined({{{search.key, "one key for each search: the value that was tried", step.value},
                    {"holds", "the condition does", step.holds}},
                   outcome_records(step.outcome)});
  });
}

}  // namespace

std::string search_text(const Search& search, const SearchResult& result) {
  TextTable table =
      table_of(step_list(search, result).items, {{search.key, search.key},
                                                 {"holds", ""},
                                                 {"step_time_s", "step time"},
                                                 {"tokens_per_second_per_gpu", "tok/s/GPU"},
                                                 {"peak_memory_bytes", "memory"},
                                                 {"reason", ""}});
  return answer_of(search, result, result.steps.back().value) + "\n" + render(table);
}

Records search_records(const Search& search, const SearchResult& result) {
  const auto found = result.found ? std::optional(result.steps[*result.found].value) : std::nullopt;
  return {{"key", "that is searched", search.key},
          {"goal", "max or min", search.largest ? "max" : "min"},
          {"condition", "such that", search.statement.text()},
          {"method", "bounds, bisection or grid", method_of(result)},
          {"found", "its value", found},
          {"at_end_of_range", "a further value might do as well", at_end(search, result)},
          {"points", "that were tried", step_list(search, result)}};
}

Records search_sample() {
  SearchResult result;
  result.steps.push_back({0, "", false, impossible("")});
  return search_records(Search{true, "KEY", {}}, result);
}

}  // namespace stepsim
