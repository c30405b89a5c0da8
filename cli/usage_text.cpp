#include "cli/usage_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/tools.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

std::string label(const OptionSpec& option) {
  std::string text;
  if (option.letter != 0) text += fmt::format("-{}, ", option.letter);
  text += fmt::format("--{}", option.name);
  if (!option.value.empty()) text += fmt::format(" {}", option.value);
  return text;
}

std::string replaced(std::string_view text, char from, std::string_view to) {
  std::string result;
  for (const char c : text) c == from ? result += to : result += c;
  return result;
}

// Further ways to call it stand below the first, which follows "usage: " in the help.
std::string man_synopsis(std::string_view call) {
  std::string lines;
  for (const std::string_view line : lines_in(call))
    lines += fmt::format("{}\n", line.substr(std::min(line.find_first_not_of(' '), line.size())));
  return man_text(lines);
}

std::string man_body(const Usage& usage) {
  std::string page = fmt::format(".SH SYNOPSIS\n.nf\n{}.fi\n.SH DESCRIPTION\n{}\n",
                                 man_synopsis(usage.call), man_text(usage.summary));
  page += ".SH OPTIONS\n";
  for (const OptionSpec& option : usage.options) {
    page += ".TP\n";
    if (option.letter != 0) page += fmt::format("\\fB\\-{}\\fR, ", option.letter);
    page += fmt::format("\\fB\\-\\-{}\\fR", man_text(option.name));
    if (!option.value.empty()) page += fmt::format(" \\fI{}\\fR", man_text(option.value));
    page += fmt::format("\n{}\n", man_text(option.help));
  }
  page += ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nwhat stands here, shorter\n";
  if (!usage.examples.empty())
    page += fmt::format(".SH EXAMPLES\n.nf\n{}.fi\n", man_text(usage.examples));
  return page;
}

std::string bash_words(const Usage& usage) {
  std::string words = "--help";
  for (const OptionSpec& option : usage.options) words += fmt::format(" --{}", option.name);
  return words;
}

// Makes each a word of its own for the shell.
std::string zsh_specs(const Usage& usage) {
  std::string specs;
  for (const OptionSpec& option : usage.options) {
    const std::string rest =
        fmt::format("[{}]{}", zsh_text(option.help),
                    option.value.empty() ? "" : fmt::format(":{}:_files", zsh_text(option.value)));
    const std::string_view repeats = option.repeats ? "*" : "";
    specs += fmt::format("        '{}--{}{}'\n", repeats, option.name, rest);
    if (option.letter != 0)
      specs += fmt::format("        '{}-{}{}'\n", repeats, option.letter, rest);
  }
  return specs;
}

struct Form {
  std::string_view name;
  std::string (*text)(const Usage&);
};
constexpr std::array forms{Form{"man", man_body}, Form{"bash", bash_words}, Form{"zsh", zsh_specs},
                           Form{"tool", tool_usage_text}};

}  // namespace

std::string help_text(const Usage& usage) {
  std::string text = fmt::format("usage: {}\n\n{}\n", usage.call, wrap(usage.summary, 80, 0));
  std::size_t widest = 0;
  for (const OptionSpec& option : usage.options) widest = std::max(widest, label(option).size());
  if (!usage.options.empty()) text += "\noptions:\n";
  for (const OptionSpec& option : usage.options)
    text += fmt::format("  {:<{}}  {}\n", label(option), widest, wrap(option.help, 80, widest + 4));
  if (!usage.examples.empty()) text += fmt::format("\nexamples:\n{}", usage.examples);
  return text;
}

std::string usage_as(std::string_view form, const Usage& usage) {
  std::vector<std::string> names;
  for (const Form& each : forms) {
    if (each.name == form) return each.text(usage);
    names.emplace_back(each.name);
  }
  throw UserError(fmt::format("--help: expected nothing, {}, found \"{}\"", one_of(names), form));
}

// A hyphen would become a longer dash, and a dot or a quote at the beginning of a line a request.
std::string man_text(std::string_view text) {
  std::string plain = replaced(replaced(text, '\\', "\\e"), '-', "\\-");
  std::string page;
  bool begins = true;
  for (const char c : plain) {
    if (begins && (c == '.' || c == '\'')) page += "\\&";
    page += c;
    begins = c == '\n';
  }
  return page;
}

// Escapes the text for single quotes, where colons and brackets divide a specification.
std::string zsh_text(std::string_view text) {
  std::string result(text);
  result = replaced(result, '\\', "\\\\");
  for (const char mark : {':', '[', ']'}) result = replaced(result, mark, std::string("\\") + mark);
  return replaced(result, '\'', "'\\''");
}

}  // namespace stepsim
