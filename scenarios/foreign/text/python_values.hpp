// Values of a Python file that can be known without running it: literals, names that are assigned
// them, arithmetic, and what functions made of these give back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "scenarios/foreign/text/python_syntax.hpp"

namespace stepsim {

struct PythonValue {
  enum class Kind : std::uint8_t { none, truth, number, text, list, unknown };
  Kind kind = Kind::unknown;
  double number = 0;       // of a truth: 0 or 1
  bool whole = false;      // a number without a fraction
  std::string text{};      // of an unknown: why
  std::string variable{};  // of an unknown: the name that would say it
  std::vector<PythonValue> items{};
};

struct PythonCall {
  std::string name{};  // "trl.SFTConfig"
  int line = 0;
  std::vector<PythonTokens> positional{};
  struct Keyword {
    std::string name{};
    PythonTokens value{};
    int line = 0;
  };
  std::vector<Keyword> keywords{};
  std::size_t scope = 0;  // in which it stands
};

struct PythonFile {
  std::vector<PythonScope> scopes;
  std::map<std::string, std::string> environment;  // os.environ
  std::map<std::string, std::string> given;        // names that are set from outside
  std::map<std::string, PythonTokens> arguments;   // of a parser, with their defaults
  std::map<std::string, std::string> said;         // of these, by who starts the file
  std::string processes{};                         // how many are started; empty: not known
  mutable std::size_t steps = 0;                   // that values took so far: see most_in_file
};

PythonFile read_python(std::string_view text, const std::string& file);
// Calls whose last name is wanted: "SFTConfig" of "trl.SFTConfig(...)".
std::vector<PythonCall> calls_in(const PythonFile& file,
                                 const std::function<bool(const std::string&)>& is_wanted);
PythonValue value_of(const PythonFile& file, std::size_t scope, const PythonTokens& tokens);

}  // namespace stepsim
