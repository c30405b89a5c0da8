// The cell of a table that names a card says this of its machine: the card by name, size and form.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "scenarios/rows/measured.hpp"

namespace stepsim {

// Returns which of the nodes has the GPU that the cell names, in the size and form that it says.
std::optional<std::size_t> named_node(const MachineWords& machines, std::string_view hardware);

}  // namespace stepsim
