// Families of groups that do the same with other numbers: a gather and the reduction of the same
// bytes, or two protocols. What tells ranks, links and flows of one apart tells those
// of the other apart, so folding looks at one of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/symmetry.hpp"

namespace stepsim {

// [family]: the first family that it is like; itself, if there is none.
using Twins = std::vector<std::uint32_t>;

inline bool is_twin(const Twins& twins, std::uint32_t family) {
  return twins[family] != family;
}

// Twins have the same members, rounds and flows in the same order, and where one has equal numbers
// the other has.
Twins find_twins(std::span<const Family> families);
Twins no_twins(std::span<const Family> families);

}  // namespace stepsim
