// A file may hold values that somebody wrote down without knowing them.
#pragma once

#include <string>

#include "sim/base/config_tree.hpp"

namespace stepsim::detail {

// Makes every mapping below `node` that is such a value a scalar: its value, or what is drawn for
// it. What else it may be stays with it, so that a reader can refuse that too. `path` is the
// node's.
void settle_unknown(Node& node, const std::string& path, Notes& notes);

}  // namespace stepsim::detail
