// This reads the YAML that people write nearly always, in a tenth of the time.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/config_tree.hpp"

namespace stepsim::detail {

// The tree that parse_any_yaml() would make; nothing where the text holds more than this reader is
// sure of, or a mistake: then that one has to look.
std::optional<Node> parse_plain_yaml(std::string_view text);

}  // namespace stepsim::detail
