// This reckons the whole numbers of $(( )): + - * / % ** and brackets, comparisons and choices
// between two values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stepsim {

// Returns nothing where the text cannot be reckoned: a name that `value_of` does not know, a
// division by zero, or a sign that is not read.
std::optional<std::int64_t> shell_arithmetic(
    std::string_view text,
    const std::function<std::optional<std::int64_t>(const std::string&)>& value_of);

}  // namespace stepsim
