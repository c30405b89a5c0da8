// This reads command lines with Boost.Program_options, and puts its complaints in our words.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/number_list.hpp"

namespace stepsim {

struct OptionSpec {
  std::string name;   // "sizes"
  std::string value;  // "A:B"; empty: a switch
  std::string help;
  char letter = 0;         // 'o': "-o" says the same
  bool repeats = false;    // may be given several times
  bool of_source = false;  // belongs to every command that reads files of other programs
};

// A usage is what a file of cli/commands/ says of a command.
struct Usage {
  std::string brief;    // in the list of commands
  std::string call;     // "stepsim collective NAME --cluster C [options]"
  std::string summary;  // what it does, in a sentence or two
  std::vector<OptionSpec> options;
  std::string examples;        // ready to paste
  std::size_t most_words = 1;  // arguments without a dash
  std::string asks{};          // what it asks for where there is none: "which scenario"
};
Usage usage_of_command(std::string_view command);
// Returns the options that stand before the command.
std::vector<OptionSpec> front_options();
// Returns a file of cli/commands/ as it was compiled in.
std::string_view command_asset(std::string_view name);

struct Options {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> values;

  bool has(std::string_view name) const;
  std::optional<std::string> get(std::string_view name) const;
};

// Returns every value of an option that repeats, in order.
std::vector<std::string> all_of(const Options& options, std::string_view name);

// Returns every "--set key=value", in order, as {key, value}.
std::vector<std::pair<std::string, std::string>> said_settings_of(const Options& options,
                                                                  std::string_view option = "set");
// Returns what holds for all sides of a comparison: the options of source files, and --both.
std::vector<std::pair<std::string, std::string>> shared_settings_of(const Options& options);
// Returns the same behind the settings that options such as --cluster stand for.
std::vector<std::pair<std::string, std::string>> settings_of(const Options& options);

// Returns nothing when help was asked for and printed. Throws UserError on what is wrong, with the
// nearest option.
std::optional<Options> parse(const Usage& usage, std::span<const std::string> words);
std::optional<Options> parse(std::string_view command, std::span<const std::string> words);

// Reads a word out of a closed list; the message names the list and the nearest member.
std::string word_of(const Options& options, std::string_view name, std::string_view fallback,
                    std::initializer_list<std::string_view> allowed);
// Throws UserError where more than one of these is given: each is a form of the whole answer.
void require_one_form(const Options& options, std::initializer_list<std::string_view> forms);
// Reads "0,1,4-7" as 0 1 4 5 6 7.
std::vector<std::uint32_t> parse_ranks(std::string_view text);
// "64KiB:16GiB" doubles from one to the other; "1MiB,4MiB" are single sizes.
std::vector<double> parse_sizes(std::string_view text);
// Returns the size of an option that may be absent, such as "1.5 GB", in bytes.
std::optional<double> size_of(const Options& options, std::string_view name);
// Returns the count of an option that may be absent.
std::optional<std::uint32_t> count_of(const Options& options, std::string_view name,
                                      std::uint32_t low, std::uint32_t high);

}  // namespace stepsim
