// The shape of a Python file, as far as it is needed to find what a training is told: tokens,
// assignments, functions. Nothing of it is run.
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

// NAME = value, or the value that a function gives back.
struct PythonAssignment {
  std::vector<std::string> names{};  // several: a, b = ...
  PythonTokens value{};
  int line = 0;
};

// A scope is the file itself, or one function.
struct PythonScope {
  std::string name{};  // empty: the file
  std::vector<PythonAssignment> assignments{};
  std::vector<PythonAssignment> returns{};
  std::vector<PythonTokens> statements{};  // all of them, assignments as well
};

// Returns first the file itself, then functions and methods in their order. Throws UserError about
// text and brackets that are never closed.
std::vector<PythonScope> parse_python(std::string_view text, const std::string& file);

}  // namespace stepsim
