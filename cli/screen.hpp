// This knows what a terminal can show, and is the one way to it.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace stepsim {

// Columns for text that is wrapped: the terminal's own, or $COLUMNS; 110 where there is none. Never
// less than 60: a table does not get narrower than that anyway.
std::size_t line_width();

// Writes the text so that a terminal does nothing but show it: files of others are quoted in it.
// Throws std::system_error where it cannot be written. Whoever reads it may go away, as `head`
// does: that changes nothing of what a command does, nor its exit code.
void write_shown(std::FILE* to, std::string_view text);
template <class... Parts>
void say(std::FILE* to, fmt::format_string<Parts...> format, Parts&&... parts) {
  write_shown(to, fmt::format(format, std::forward<Parts>(parts)...));
}
template <class... Parts>
void say(fmt::format_string<Parts...> format, Parts&&... parts) {
  say(stdout, format, std::forward<Parts>(parts)...);
}

// Colours are for a terminal whose user did not set NO_COLOR.
enum class Colour : unsigned char { good, bad, strong };
// Marks the text so that what say() writes to a terminal shows the colour, and nothing else does.
std::string coloured(std::string_view text, Colour colour);

// Quotes the text so that a shell takes it for one word.
std::string shell_word(const std::string& text);

}  // namespace stepsim
