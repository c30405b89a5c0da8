#include <fmt/format.h>

#include <array>

#include "cli/sweep_text.hpp"
#include "sim/base/json.hpp"
#include "sim/base/table.hpp"
#include "sim/base/units.hpp"

namespace stepsim {
namespace {

constexpr std::array<std::string_view, 3> method_names{"bounds", "bisection", "grid"};

std::string_view method_of(const SearchResult& result) {
  return method_names[static_cast<std::size_t>(result.method)];
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

}  // namespace

std::string search_text(const Search& search, const SearchResult& result) {
  TextTable table{
      {search.key, "", "step time", "tok/s/GPU", "memory", ""},
      {Align::right, Align::left, Align::right, Align::right, Align::right, Align::left},
      {}};
  for (const SearchStep& step : result.steps) {
    const auto shown = [&](std::string_view metric, const auto& text) {
      const auto value = step.outcome.of(metric);
      return value ? std::string(text(*value)) : "-";
    };
    table.rows.push_back(
        {step.value, step.holds ? "yes" : "no",
         shown("step_time", [](double v) { return to_text(Seconds{v}); }),
         shown("tokens_per_second_per_gpu", [](double v) { return fmt::format("{:.0f}", v); }),
         shown("peak_memory", [](double v) { return to_text(Bytes{v}); }), step.outcome.reason});
  }
  return answer_of(search, result, result.steps.back().value) + "\n" + render(table);
}

std::string search_json(const Search& search, const SearchResult& result) {
  JsonWriter json;
  json.begin_object()
      .member("key", search.key)
      .member("goal", search.largest ? "max" : "min")
      .member("condition", search.statement.text())
      .member("method", method_of(result))
      .key("found");
  result.found ? json.value(result.steps[*result.found].value) : json.null();
  json.member("at_end_of_range", at_end(search, result));
  json.key("points").begin_array();
  for (const SearchStep& step : result.steps) {
    json.begin_object()
        .member(search.key, step.value)
        .member("holds", step.holds)
        .member("feasible", step.outcome.feasible)
        .key("reason");
    step.outcome.feasible ? json.null() : json.value(step.outcome.reason);
    for (std::size_t m = 0; m < all_metrics().size(); ++m)
      if (all_metrics()[m].name != "fits")
        json.member(column_name(all_metrics()[m]), step.outcome.figures[m]);
    json.end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace stepsim
