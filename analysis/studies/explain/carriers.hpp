// This finds which constants a cause's cost is made of, from the program that they make.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

// This many of them are looked at one by one.
inline constexpr std::size_t most_carrying = 6;

// Carries all causes alike, so that it says nothing about any one of them.
inline constexpr std::string_view carries_everything = "stack.unexplained";

struct Carrier {
  NamedConstant constant;
  double weight = 0;  // percent by which the cause's cost moves when the constant moves by one
};

// Seconds that all operations of a cause take when each runs alone.
ByCause<double> costs_of(const Platform& platform, const OpGraph& graph);

// Returns for each cause the constants that move its cost by a twentieth of themselves or more, the
// strongest first. Each constant that has a range is moved by a hundredth and the program written
// anew; nothing is replayed.
ByCause<std::vector<Carrier>> carriers_of(const Catalogue& data, const std::string& source,
                                          const std::vector<Setting>& settings);

}  // namespace stepsim
