// This says whether two readers of a text made the same of it.
#pragma once

#include <algorithm>

#include "sim/base/config_tree.hpp"

namespace stepsim {

inline bool same_tree(const detail::Node& a, const detail::Node& b) {
  return a.shape == b.shape && a.line == b.line && a.quoted == b.quoted && a.scalar == b.scalar &&
         std::ranges::equal(a.items, b.items, same_tree) &&
         std::ranges::equal(a.entries, b.entries,
                            [](const detail::Entry& one, const detail::Entry& other) {
                              return one.key == other.key && same_tree(one.value, other.value);
                            });
}

}  // namespace stepsim
