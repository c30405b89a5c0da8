// Files beside a Python file: modules of the same repository that it imports, and files of settings
// that it loads. They are read, and nothing is run; what lies outside the repository is not read.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "scenarios/foreign/text/python_values.hpp"

namespace stepsim {

struct PythonProgram {
  PythonFile file;
  // Lines in which modules are imported, by their scopes.
  std::map<std::size_t, int> imported{};
};

// `near` is where the file lies; empty: nothing beside it is read. Throws UserError about what is
// no Python; a module that is none is left out.
PythonProgram read_python_program(std::string_view text, const std::string& file,
                                  const std::string& near);

}  // namespace stepsim
