// What a terminal can show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stepsim {

// Columns for text that is wrapped: the terminal's own, or $COLUMNS; 110 where there is none. Never
// less than 60: a table does not get narrower than that anyway.
std::size_t line_width();

// Colours are for a terminal whose user did not set NO_COLOR.
enum class Colour : unsigned char { good, bad, strong };
std::string coloured(std::string_view text, Colour colour);

}  // namespace stepsim
