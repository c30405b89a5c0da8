// This is one description of a command's options, in every form that somebody wants it in: help, a
// man page, what the shells complete, and JSON Schema.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/command.hpp"
#include "cli/options.hpp"

namespace stepsim {

std::string help_text(const Usage& usage);

// `stepsim run --help=man` is for the tools that make pages and completions, not for people.
inline constexpr std::string_view help_as = "--help=";
// The form "man" is the body of a page, "bash" the words, "zsh" the specifications of _arguments,
// "tool" what programs are told (cli/tools.hpp).
// Throws UserError for any other.
std::string usage_as(std::string_view form, const Usage& usage);

// Text as troff and zsh want it.
std::string man_text(std::string_view text);
std::string zsh_text(std::string_view text);

// Prints on stdout: "man" is the page stepsim(1), "bash" and "zsh" are completions. Throws
// UserError for any other form.
void print_page(std::string_view form, std::span<const Command> commands);
// Prints the page of one command, stepsim-NAME(1).
void print_command_page(const Command& command);

}  // namespace stepsim
