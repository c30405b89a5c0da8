// These helpers name in one word what is asked of lists again and again.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <ranges>
#include <string>
#include <type_traits>
#include <vector>

namespace stepsim {

// Returns whether the value, or an element whose `part` is the value, is in the range.
template <class Range, class Value, class Part = std::identity>
bool holds(const Range& range, const Value& value, Part part = {}) {
  return std::ranges::find(range, value, part) != std::ranges::end(range);
}

// Returns what `part`, a function or a member, makes of each element, in order.
template <class Range, class Part>
auto mapped(const Range& range, const Part& part) {
  using Result = std::invoke_result_t<const Part&, std::ranges::range_reference_t<const Range>>;
  std::vector<std::remove_cvref_t<Result>> list;
  list.reserve(std::size(range));
  for (const auto& each : range) list.push_back(std::invoke(part, each));
  return list;
}

// Does the same and returns texts of their own, for elements or parts that are views of others.
template <class Range, class Part = std::identity>
std::vector<std::string> texts_of(const Range& range, const Part& part = {}) {
  return mapped(range, [&](const auto& each) { return std::string(std::invoke(part, each)); });
}

// All of `more` behind what is there already.
template <class Element, class Range = std::initializer_list<Element>>
void append(std::vector<Element>& list, Range&& more) {
  if constexpr (std::is_lvalue_reference_v<Range> || std::ranges::view<Range>)
    list.insert(list.end(), std::ranges::begin(more), std::ranges::end(more));
  else
    list.insert(list.end(), std::make_move_iterator(std::ranges::begin(more)),
                std::make_move_iterator(std::ranges::end(more)));
}

}  // namespace stepsim
