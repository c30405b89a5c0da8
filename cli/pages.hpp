// These print the man page of the program, and completions for shells: they are made from the table
// of commands and what each says of its options, so that they cannot say anything else.
#pragma once

#include <span>
#include <string_view>

#include "cli/command.hpp"

namespace stepsim {

// Prints on stdout: "man" is the page stepsim(1), "bash" and "zsh" are completions. Throws
// UserError for any other form.
void print_page(std::string_view form, std::span<const Command> commands);
// Prints the page of one command, stepsim-NAME(1).
void print_command_page(const Command& command);

}  // namespace stepsim
