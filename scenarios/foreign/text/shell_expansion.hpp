// These keep the variables of a shell script, and fill them into words.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/foreign/text/shell_syntax.hpp"

namespace stepsim {

// Something that only a run would know.
struct ShellUnknown {
  std::string reason;    // "$(nproc) of line 5, which is not run"
  std::string variable;  // that would say it; empty: none
  bool unset = false;    // it is a variable that nothing sets
};

struct ShellValue {
  std::vector<ShellText> items;  // one where it is no list
  bool list = false;
};

struct ShellState {
  std::map<std::string, ShellValue> variables;  // "@": the arguments
  std::set<std::string> exported;
  bool ended = false;     // by exit
  bool failed = false;    // with another status than 0
  bool returned = false;  // from the function under way
};

struct ShellMemory {
  std::string file;
  std::map<std::string, std::string> given;  // stands over what the script says
  ShellState state{};
  std::vector<ShellUnknown> unknowns{};
  std::set<std::string> names{};  // that were set or asked for
  bool elsewhere = false;         // files that nobody has here may have set others

  Letter unknown(std::string reason, std::string variable, int line);
  void assign(const std::string& name, ShellValue value);
};

// One raw word as the words that it becomes: variables without quotes fall apart at blanks.
std::vector<ShellText> expand_word(const ShellText& raw, ShellMemory& memory);
// Expands the right side of an assignment: nothing falls apart.
ShellText expand_text(const ShellText& raw, ShellMemory& memory);
// Expands a here-document: quotes are letters like others.
ShellText expand_document(const ShellText& raw, ShellMemory& memory);
// Expands $((...)) without the brackets.
ShellText expand_arithmetic(const ShellText& raw, int line, ShellMemory& memory);

bool is_shell_name(std::string_view word);

}  // namespace stepsim
