// The man page of the program, and completions for shells: made from the table of commands and what
// each says of its options, so that they cannot say anything else.
#pragma once

#include <span>
#include <string_view>

#include "cli/command.hpp"

namespace stepsim {

// On stdout: "man" the page stepsim(1), "bash" and "zsh" a completion. Throws UserError for any
// other form.
void print_page(std::string_view form, std::span<const Command> commands);
// The page of one command, stepsim-NAME(1).
void print_command_page(const Command& command);

}  // namespace stepsim
