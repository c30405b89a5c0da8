// This reads a shell script and never runs it: the words of its commands, with variables filled in
// as far as the script itself says them. What only a run would know is said by line.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepsim {

struct ShellWord {
  std::string text;
  int line = 0;
  // Why the text is not known, or not all of it: "$1, which nothing sets"; and the variable that
  // would say it, if there is one. Empty: it is known.
  std::string unknown{}, variable{};
  std::string tail{};  // what stands behind the last piece that is not known
};

struct ShellCommand {
  std::vector<ShellWord> words;
  int line = 0;
  std::map<std::string, ShellWord> environment;  // what is exported, and NAME=value before it
};

// A file that the script writes with a here-document.
struct ShellFile {
  std::string text;
  int line = 0;  // of its first line
};

struct ShellScript {
  std::string file;
  std::vector<ShellCommand> commands;  // in the order of a run; of loops all turns over their words
  std::map<std::string, ShellFile> files;
  std::set<std::string> names;                    // of the variables that it sets or asks for
  std::map<std::string, std::string> directives;  // "#SBATCH -N 2": {"nodes", "2"}
  std::vector<std::string> notes;
};

// Returns a file that a script writes itself, or that lies beside it in the same wrapping.
const ShellFile* written_file(const ShellScript& script, const std::string& name);

// Reads a script. `given` are variables that stand over what the script says, arguments as "1". Of
// an `if` that cannot be decided both sides are read; what they set differently is not known.
// Throws UserError about what is no shell script.
ShellScript read_shell_script(std::string_view text, const std::string& file,
                              std::span<const std::pair<std::string, std::string>> given);

}  // namespace stepsim
