// This reads a Python file that runs a training in the containers of Modal: on which GPUs, and the
// command that it starts there, if it starts one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/foreign/wrapped/wrapped_source.hpp"

namespace stepsim {

// Returns nothing where the text does not import modal.
std::optional<WrappedSource> read_modal_program(std::string_view text, const std::string& file);

}  // namespace stepsim
