// Draws of the constants that studies rest on: how many, what they say, and which constants move a
// figure most.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/base/draw.hpp"

namespace stepsim {

// This many draws make a Latin hypercube together; a study draws one hypercube after the other.
inline constexpr std::uint32_t draws_at_once = 8;
Draw draw_number(std::uint32_t number, std::uint64_t seed);

// Nine draws of ten say so.
inline constexpr double sure = 0.9;
// Returns whether more draws could move the share of those that hold across `sure`, or below its
// opposite.
bool may_change(std::uint32_t holds, std::uint32_t draws);

// Eight draws of ten, and the stated value: ranges are lopsided, it may lie outside of them.
Range range_of(std::vector<double> values, double stated);

// The constants whose places in their ranges go with a figure over its draws, the most telling one
// first; each next one explains best what those before it leave over.
std::vector<NamedConstant> telling_constants(std::span<const NamedConstant> constants,
                                             std::span<const double> figures,
                                             std::span<const Draw> draws, std::size_t most);

// A mover is a figure with one constant at either end of its range.
struct Mover {
  NamedConstant constant;
  double at_low = 0, at_high = 0;

  double swing() const;
};
// A constant that moves a figure by less than this share of it does not decide.
inline constexpr double least_swing = 0.02;
// A constant that moves it by less than this at one end of its range, the one that
// is_high_further() names, is taken to do so at the other.
inline constexpr double moves_little = least_swing / 4;
// Returns whether the upper end of the range is farther from the stated value than the lower, as a
// ratio where that can be said.
bool is_high_further(const NamedConstant& constant);
// Returns the movers that move the figure by more, the strongest first, and no more than `most`.
std::vector<Mover> strongest(std::vector<Mover> movers, double stated, std::size_t most);

// The setting that puts a constant there.
Setting setting_of(const NamedConstant& constant, double value);
// Adds the constants that have a range, each once; a scenario's own or several scenarios' together.
void add_uncertain(std::vector<NamedConstant>& to, std::span<const NamedConstant> from);
bool has_constant(std::span<const NamedConstant> constants, const std::string& name);
// Returns whether the constant is what a part draws: such a constant moves no time.
bool is_power(const NamedConstant& constant);
// It is there and has a range: somebody who sets it himself knows it.
bool is_uncertain(std::span<const NamedConstant> constants, const std::string& name);

enum class RangeEnd { low, high };
// The setting that puts the one of this name at an end of its range; nothing where none has one.
// Two machines have a constant of the same name each, with a range of its own.
std::optional<Setting> setting_at(std::span<const NamedConstant> constants, const std::string& name,
                                  RangeEnd end);

}  // namespace stepsim
