// What is asked of lists again and again, in a word each.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepsim {

// Whether the value, or an element whose `part` is the value, is among them.
template <class Range, class Value, class Part = std::identity>
bool holds(const Range& range, const Value& value, Part part = {}) {
  return std::ranges::find(range, value, part) != std::ranges::end(range);
}

// What `part` makes of each element, in order: a function, or a member.
template <class Range, class Part>
auto mapped(const Range& range, const Part& part) {
  using Result = std::invoke_result_t<const Part&, std::ranges::range_reference_t<const Range>>;
  std::vector<std::remove_cvref_t<Result>> list;
  list.reserve(std::size(range));
  for (const auto& each : range) list.push_back(std::invoke(part, each));
  return list;
}

// The same as texts, where the elements or their parts are views of some.
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
