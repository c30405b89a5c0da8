// The shape of a Python file, as far as it is needed to find what a training is told: tokens,
// assignments with the conditions that they stand under, functions, classes. Nothing of it is run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

enum class PythonKind : std::uint8_t { name, number, text, template_text, sign };
struct PythonToken {
  PythonKind kind = PythonKind::sign;
  std::string text{};
  int line = 0;
};
using PythonTokens = std::vector<PythonToken>;

// A guard is what has to hold for a line to run: a condition, and the guard around that; -1: none.
struct PythonGuard {
  int around = -1;
  PythonTokens condition{};  // empty: it is taken not to run, as what handles exceptions
  bool wanted = true;
};

// NAME = value, or the value that a function gives back.
struct PythonAssignment {
  std::vector<std::string> names{};  // several: a, b = ...; "a.b" is a.b = ... and a["b"] = ...
  PythonTokens value{};
  int line = 0, guard = -1;
};

struct PythonStatement {
  PythonTokens tokens{};
  int guard = -1;
};

struct PythonParameter {
  std::string name{};
  PythonTokens standard{};  // its default; empty: it has none
};

// A scope is the file itself, or one function.
struct PythonScope {
  std::string name{};  // empty: the file
  std::string of{};    // the class whose method it is
  std::size_t module = 0;
  std::size_t around = 0;  // the scope that it is defined in
  std::vector<PythonParameter> parameters{};
  std::vector<PythonTokens> decorators{};
  std::vector<PythonAssignment> assignments{}, returns{};
  std::vector<PythonStatement> statements{};  // all of them, assignments as well
};

struct PythonClass {
  std::string name{};
  std::vector<std::string> bases{};  // the last parts of their names
  std::size_t module = 0;
  int line = 0;
  bool is_data = false;  // its fields are arguments of the one who makes it
  std::vector<PythonAssignment> fields{};
};

// from module import name; "*" takes all of them.
struct PythonImport {
  std::string module{};
  std::vector<std::string> names{};
  int line = 0;
};

struct PythonShape {
  std::vector<PythonScope> scopes{};  // first the file itself, then functions in their order
  std::vector<PythonClass> classes{};
  std::vector<PythonGuard> guards{};
  std::vector<PythonImport> imports{};
  std::map<std::string, std::string> aliases{};  // import A as B: {"B", "A"}
};

// Throws UserError about text and brackets that are never closed.
PythonShape parse_python(std::string_view text, const std::string& file);

bool is_sign(const PythonToken& token, std::string_view sign);
bool is_name(const PythonToken& token, std::string_view name);

// Returns the parts between the signs of this kind that stand in no brackets.
std::vector<PythonTokens> parts_between(const PythonTokens& tokens, std::string_view sign);

}  // namespace stepsim
