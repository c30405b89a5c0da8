// The largest or smallest value of a setting for which something holds, without trying them all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/studies/sweep/expression.hpp"
#include "analysis/studies/sweep/sweep_plan.hpp"
#include "analysis/studies/sweep/sweep_table.hpp"

namespace stepsim {

// This is what "max job.micro_batch such that fits" asks for.
struct Search {
  bool largest = false;
  std::string key;
  Statement statement;
};
// Reads a search, whose condition speaks of metrics and their shares. Throws UserError that shows
// the place.
Search parse_search(std::string_view text);

enum class SearchMethod : std::uint8_t {
  bounds,     // it holds at every value that was tried, or at none
  bisection,  // it changed once between the values tried first, and was narrowed down there
  grid,       // it changed more than once, so every value was tried
};

struct SearchStep {
  std::size_t candidate = 0;
  std::string value;
  bool holds = false;
  Outcome outcome;
};

struct SearchResult {
  std::optional<std::size_t> found;  // of `steps`
  SearchMethod method{};
  std::vector<SearchStep> steps;  // by candidate
};

// Over the values of the plan's only axis, which must be the search's key; they are tried at
// doubling distances first.
SearchResult run_search(const Catalogue& data, const SweepPlan& plan, const Search& search);

}  // namespace stepsim
