// Values of a Python file that can be known without running it: literals, names that are assigned
// them, fields of classes, arithmetic, and what functions made of these give back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scenarios/foreign/text/python_syntax.hpp"

namespace stepsim {

struct PythonValue {
  // `table` is a dictionary, `object` what a class of the file makes: its keywords.
  enum class Kind : std::uint8_t { none, truth, number, text, list, table, object, unknown };
  Kind kind = Kind::unknown;
  double number = 0;       // of a truth: 0 or 1
  bool whole = false;      // a number without a fraction
  std::string text{};      // of an unknown: why; of an object: its class
  std::string variable{};  // of an unknown: the name that would say it
  std::vector<PythonValue> items{};
  std::vector<std::string> keys{};  // of a table's items

  const PythonValue* at(const std::string& key) const;
};

struct PythonCall {
  std::string name{};  // "trl.SFTConfig"
  int line = 0;
  std::vector<PythonTokens> positional{};
  struct Keyword {
    std::string name{};  // empty: **value
    PythonTokens value{};
    int line = 0;
  };
  std::vector<Keyword> keywords{};
  std::size_t scope = 0;  // in which it stands
  int from = 0;           // the line that its statement begins in
  int guard = -1;
  PythonTokens only_if{};  // call(...) if CONDITION else ...
};

struct PythonFile : PythonShape {
  std::map<std::string, std::string> environment{};  // os.environ
  std::map<std::string, std::string> given{};        // names that are set from outside
  std::map<std::string, PythonTokens> arguments{};   // of a parser, with their defaults
  std::map<std::string, std::string> said{};         // of these, by who starts the file
  std::map<std::string, PythonValue> parsed{};       // arguments that a file of it says
  std::map<std::string, PythonValue> unsaid{};       // what only a run of who starts it says
  std::string processes{};                           // how many are started; empty: not known
  // Returns what a file of settings beside this one holds; unset: no file is read.
  std::function<std::optional<PythonValue>(const std::string&)> settings_file{};
  std::multimap<std::string, PythonCall> calls{};  // of functions and classes of the file
  mutable std::map<int, int> verdicts{};           // of guards: see PythonGuard
  mutable std::set<std::string> asked{};  // of `given`, the names that decided on something
  using Asked = std::tuple<std::size_t, int, int, std::string>;  // scope, line, guard, name
  mutable std::map<Asked, std::optional<PythonValue>> known{};   // values that names have there
  mutable std::size_t steps = 0;  // that values took so far: see most_in_file
};

// Where the value is asked for: what is assigned behind the line does not count there.
struct PythonPlace {
  std::size_t scope = 0;
  int line = 0;  // 0: behind all
  int guard = -1;
};
PythonPlace place_of(const PythonCall& call);

PythonFile read_python(std::string_view text, const std::string& file);
// Adds what another file says, as a module that this one imports.
void add_module(PythonFile& file, PythonShape module);
// Finds the defaults of parsers, and who calls which function. To be called once all modules are
// there.
void index_python(PythonFile& file);
// Calls whose last name is wanted: "SFTConfig" of "trl.SFTConfig(...)".
std::vector<PythonCall> calls_in(const PythonFile& file,
                                 const std::function<bool(const std::string&)>& is_wanted);
PythonValue value_of(const PythonFile& file, const PythonPlace& place, const PythonTokens& tokens);
// Returns whether a guard holds; nothing: only a run would know.
std::optional<bool> holds_at(const PythonFile& file, std::size_t scope, int guard);
// Returns the fields of a class with those of its bases in the file, by their names.
std::vector<PythonAssignment> fields_of(const PythonFile& file, const PythonClass& type);

}  // namespace stepsim
