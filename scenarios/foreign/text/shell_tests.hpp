// These judge what a command of a shell script would end with: tests such as [ -z "$X" ], where
// words may be known in part.
#pragma once

#include <cstdint>
#include <span>

#include "scenarios/foreign/text/shell_syntax.hpp"

namespace stepsim {

// A verdict is what a command would end with. `ran`: it is a program, which is taken to do well,
// but not where an `if` asks for it.
enum class ShellVerdict : std::uint8_t { yes, no, open, ran };

ShellVerdict verdict(bool value);
ShellVerdict turned(ShellVerdict value, bool negated);

using Fields = std::span<const ShellText>;

bool has_unknown(const ShellText& text);

// Judges the words between [ and ], or behind `test`.
ShellVerdict tested(Fields words);
// Returns whether it is [ -z "$X" ], [ "$X" = "" ] or the like.
bool asks_for_emptiness(Fields words);

}  // namespace stepsim
