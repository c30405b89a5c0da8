#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "scenarios/foreign/wrapped/wrapped_source.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

std::string_view trimmed_line(std::string_view text) {
  const std::size_t from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

bool is_name_of_variable(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) &&
         text.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
             std::string_view::npos;
}

// $(NAME) and $${NAME} of a Makefile in the words of a shell; functions of make are left, and a run
// alone knows them.
std::string in_words_of_shell(std::string_view line) {
  std::string result;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '$' || at + 1 >= line.size()) {
      result += line[at];
      continue;
    }
    if (line[at + 1] == '$') {
      result += '$';
      ++at;
      continue;
    }
    const std::size_t end = line.find(')', at);
    const bool variable = line[at + 1] == '(' && end != std::string_view::npos &&
                          is_name_of_variable(line.substr(at + 2, end - at - 2));
    if (!variable) {
      result += line[at];
      continue;
    }
    result += fmt::format("${{{}}}", line.substr(at + 2, end - at - 2));
    at = end;
  }
  return result;
}

// NAME = value, NAME := value, NAME ?= value: returns "NAME=\"value\"", or nothing.
std::string assignment_in(std::string_view line) {
  const std::size_t sign = line.find('=');
  if (sign == std::string_view::npos) return "";
  std::string_view name = line.substr(0, sign);
  while (!name.empty() && std::string_view(":?!").find(name.back()) != std::string_view::npos)
    name.remove_suffix(1);
  name = trimmed_line(name);
  if (name.starts_with("export ")) name = trimmed_line(name.substr(7));
  std::string_view value = line.substr(sign + 1);
  value = trimmed_line(value.substr(0, value.find(" #")));
  if (!is_name_of_variable(name)) return "";
  const bool quoted = value.find_first_of("\"'") != std::string_view::npos;
  const std::string said = in_words_of_shell(value);
  return quoted ? fmt::format("export {}={}", name, said)
                : fmt::format("export {}=\"{}\"", name, said);
}

// The words of ["torchrun", "train.py"] as a command.
std::string command_of_list(std::string_view list) {
  std::string command;
  for (std::size_t at = list.find('"'); at != std::string_view::npos; at = list.find('"', at)) {
    const std::size_t end = list.find('"', at + 1);
    if (end == std::string_view::npos) break;
    command += shell_quoted(list.substr(at + 1, end - at - 1)) + " ";
    at = end + 1;
  }
  const std::string_view shells[]{"'bash' '-c' ", "'sh' '-c' ", "'/bin/bash' '-c' ",
                                  "'/bin/sh' '-c' ", "'bash' '-lc' "};
  for (const std::string_view shell : shells)
    if (command.starts_with(shell) && command.size() > shell.size() + 3)
      return command.substr(shell.size() + 1, command.size() - shell.size() - 3);
  return command;
}

}  // namespace

WrappedSource read_makefile(std::string_view text) {
  WrappedSource source{.title = "a Makefile", .nothing = "none of its commands starts a training"};
  bool goes_on = false;
  for (const std::string_view line : lines_in(text)) {
    if (goes_on || line.starts_with('\t')) {
      std::string_view command = goes_on ? line : line.substr(1);
      while (!goes_on && !command.empty() &&
             std::string_view("@-+").find(command.front()) != std::string_view::npos)
        command.remove_prefix(1);
      source.shell += in_words_of_shell(command);
      goes_on = command.ends_with('\\');
    } else {
      source.shell += assignment_in(line);
    }
    source.shell += '\n';
  }
  return source;
}

WrappedSource read_dockerfile(std::string_view text) {
  WrappedSource source{.title = "a Dockerfile",
                       .nothing =
                           "it starts no training (CMD and ENTRYPOINT): the script or the "
                           "program that is started in the container is what to give"};
  std::string entry, command;
  int line = 0, begin = 0, started = 0;
  std::string instruction;
  for (const std::string_view each : lines_in(text)) {
    ++line;
    const std::string_view said = trimmed_line(each);
    if (said.starts_with('#')) continue;
    if (instruction.empty()) begin = line;
    instruction += said;
    if (instruction.ends_with('\\')) {
      instruction.back() = ' ';
      continue;
    }
    const std::size_t blank = std::min(instruction.find(' '), instruction.size());
    const std::string name = in_small_letters(instruction.substr(0, blank));
    const std::string rest(trimmed_line(std::string_view(instruction).substr(blank)));
    const std::string words = rest.starts_with('[') ? command_of_list(rest) : rest;
    if (name == "env") {
      const std::size_t gap = rest.find_first_of(" =");
      const std::string set = gap == std::string::npos ? ""
                              : rest[gap] == ' '
                                  ? fmt::format("export {}=\"{}\"\n", rest.substr(0, gap),
                                                trimmed_line(std::string_view(rest).substr(gap)))
                                  : fmt::format("export {}\n", rest);
      source.shell += set;
    } else if (name == "entrypoint") {
      entry = words;
      command.clear();
      started = begin;
    } else if (name == "cmd") {
      command = words;
      if (entry.empty()) started = begin;
    }
    instruction.clear();
  }
  if (started > 0) {
    const auto there = static_cast<int>(std::count(source.shell.begin(), source.shell.end(), '\n'));
    source.shell += in_line(started - there, entry + " " + command) + "\n";
  }
  return source;
}

}  // namespace stepsim
