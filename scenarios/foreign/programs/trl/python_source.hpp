// This reads a Python file that trains with the trainers of transformers or TRL: keywords of their
// constructors are arguments, and nothing is run.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "scenarios/foreign/launch/launches.hpp"

namespace stepsim {

struct PythonTraining {
  Launch launch;                  // its program is the trainer: "SFTTrainer"
  Arguments arguments;            // by the names that the command line would have
  std::set<std::string> names{};  // that the file assigns
};

struct PythonQuestion {
  std::string data, file;
  std::map<std::string, std::string> environment{};  // os.environ, as a script sets it
  std::map<std::string, std::string> given{};        // names that are set from outside
  int first_line = 1;                                // of the text, in the file
  std::map<std::string, std::string> said{};         // arguments that it is started with
  std::optional<std::int64_t> processes{};           // that a script starts
};

// Returns nothing where no trainer is called. Throws UserError about what is no Python.
std::optional<PythonTraining> read_python_training(std::string_view text,
                                                   const PythonQuestion& question);

}  // namespace stepsim
