// This reads texts of YAML and JSON as trees of our own.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/config_tree.hpp"

namespace stepsim::detail {

// The one value that a text holds. Keys that stand twice or are no words are noted; `path` goes
// before their names. Throws UserError, about `file`, when the text is no YAML, holds more than one
// value, or one that is too large.
Node parse_yaml(std::string_view text, const std::string& file, Notes& notes,
                const std::string& path = "");

}  // namespace stepsim::detail
