// This reads texts of TOML as trees of our own.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/config_tree.hpp"

namespace stepsim::detail {

// The table that a text holds, keys in the order of their lines. Throws UserError, about `file`,
// when the text is no TOML.
Node parse_toml(std::string_view text, const std::string& file);

}  // namespace stepsim::detail
