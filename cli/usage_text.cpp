#include "cli/usage_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/front_options.hpp"
#include "cli/screen.hpp"
#include "cli/tools.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/table.hpp"
#include "sim/run_file.hpp"

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

// Prints what the command itself prints of its options; commands print to stdout, and so does all
// of this.
void print_part(const Command& command, std::string_view form) {
  const std::vector<std::string> words{std::string(help_as) + std::string(form)};
  command.run({{}, words});
}

void print_title(std::string_view page, std::string_view summary) {
  std::string upper;
  for (const char c : page) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  say(".TH {} 1 \"\" \"stepsim {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", upper,
      stepsim_version, man_text(page), man_text(summary));
}

void print_man(std::span<const Command> commands) {
  print_title("stepsim",
              "predicts what collectives and training steps cost on modelled GPU clusters");
  say(".SH SYNOPSIS\n.nf\nstepsim [\\-\\-data DIR...] COMMAND [ARGUMENTS]\nstepsim COMMAND "
      "\\-\\-help\nstepsim \\-\\-version\n.fi\n.SH COMMANDS\n");
  for (const Command& command : commands)
    say(".TP\n\\fB{}\\fR\n{}: see \\fBstepsim\\-{}\\fR(1)\n", command.name,
        man_text(usage_of_command(command.name).brief), command.name);
  say(".SH OPTIONS\nThese stand before the command.\n");
  for (const OptionSpec& option : front_options())
    say(".TP\n\\fB\\-\\-{}\\fR{}\n{}\n", man_text(option.name),
        option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", option.value),
        man_text(option.help));
  say(".SH EXIT STATUS\n0 yes or done, 1 the answer is no, 2 the input is wrong, 3 a bug of "
      "ours; a reader that goes away changes none of them\n.SH FILES\n.TP\n../share/stepsim\nthe "
      "installed catalogue, beside the folder of the "
      "program\n.TP\n~/.config/stepsim\nentries of your own, laid out in the same way\n");
}

void print_bash(std::span<const Command> commands) {
  std::string names, front = "--help --version";
  for (const Command& command : commands) names += fmt::format(" {}", command.name);
  for (const OptionSpec& option : front_options()) front += fmt::format(" --{}", option.name);
  say("# bash completion of stepsim\n_stepsim() {{\n  local word=${{COMP_WORDS[COMP_CWORD]}} "
      "command= i options\n  for ((i = 1; i < COMP_CWORD; ++i)); do\n    case ${{COMP_WORDS[i]}} "
      "in\n      --data) ((++i)) ;;\n      -*) ;;\n      *) command=${{COMP_WORDS[i]}}; break ;;\n "
      " "
      "  esac\n  done\n  case $command in\n    '') options='{}{}' ;;\n",
      front, names);
  for (const Command& command : commands) {
    say("    {}) options='", command.name);
    print_part(command, "bash");
    say("' ;;\n");
  }
  say("    *) options= ;;\n  esac\n  COMPREPLY=()\n  [[ -n $command && $word != -* ]] || "
      "mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n}}\ncomplete -o default -F "
      "_stepsim stepsim\n");
}

void print_zsh(std::span<const Command> commands) {
  say("#compdef stepsim\nlocal context state line\n_arguments -C \\\n");
  for (const OptionSpec& option : front_options())
    say("  '{}--{}[{}]{}' \\\n", option.repeats ? "*" : "", option.name, zsh_text(option.help),
        option.value.empty() ? "" : ":folder:_files -/");
  say("  '--help[what there is]' '--version[which one this is]' \\\n  '1:command:->command' "
      "'*::argument:->argument'\ncase $state in\n  command)\n    local -a commands=(\n");
  for (const Command& command : commands)
    say("      '{}:{}'\n", command.name, zsh_text(usage_of_command(command.name).brief));
  say("    )\n    _describe command commands ;;\n  argument)\n    local -a options\n    case "
      "$words[1] in\n");
  for (const Command& command : commands) {
    say("      {}) options=(\n", command.name);
    print_part(command, "zsh");
    say("      ) ;;\n");
  }
  say("    esac\n    _arguments $options '--help[what it does]' '*:file:_files' ;;\nesac\n");
}

struct PageForm {
  std::string_view name;
  void (*print)(std::span<const Command>);
};
constexpr std::array page_forms{PageForm{"man", print_man}, PageForm{"bash", print_bash},
                                PageForm{"zsh", print_zsh}};

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

void print_page(std::string_view form, std::span<const Command> commands) {
  std::vector<std::string> names;
  for (const PageForm& each : page_forms) {
    if (each.name == form) return each.print(commands);
    names.emplace_back(each.name);
  }
  throw UserError(fmt::format("--help: expected nothing, {}, found \"{}\"", one_of(names), form));
}

void print_command_page(const Command& command) {
  print_title(fmt::format("stepsim-{}", command.name), usage_of_command(command.name).brief);
  print_part(command, "man");
  say(".SH SEE ALSO\n\\fBstepsim\\fR(1)\n");
}

}  // namespace stepsim
