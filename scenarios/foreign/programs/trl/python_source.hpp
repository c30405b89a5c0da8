// This reads a Python file that trains with the trainers of transformers or TRL, or with a loop of
// its own over PyTorch, Accelerate, DeepSpeed, Fabric or Lightning: keywords of the constructors
// are arguments, and nothing is run.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "scenarios/foreign/launch/launches.hpp"
#include "scenarios/foreign/text/python_values.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

inline constexpr std::string_view own_loop = "training loop";

struct PythonTraining {
  Launch launch;  // its program is the trainer: "SFTTrainer", "MyTrainer(Trainer)", or own_loop
  Arguments arguments;                // by the names that the command line would have
  std::set<std::string> variables{};  // of `given`, those that the file asks for
};

struct PythonQuestion {
  Catalogue data;
  std::string file;
  std::map<std::string, std::string> environment{};         // os.environ, as a script sets it
  std::map<std::string, std::string> given{};               // names that are set from outside
  int first_line = 1;                                       // of the text, in the file
  std::map<std::string, std::string> said{};                // arguments that it is started with
  std::map<std::string, std::vector<std::string>> lists{};  // of these, those of several words
  std::map<std::string, PythonValue> unsaid{};  // of these, what only a run of that knows
  std::optional<std::int64_t> processes{};      // that a script starts
  std::vector<std::string> counts{};  // keys of the trainer; empty: all that is said may be one
  std::string near{};  // the file that modules and settings lie beside; empty: none are read
};

// Returns nothing where nothing is trained. Throws UserError about what is no Python, and about a
// trainer that is none of those.
std::optional<PythonTraining> read_python_training(std::string_view text,
                                                   const PythonQuestion& question);

// Programs that train something else than a language model: by the class that they load or train.

// Returns "calls AutoModelForSequenceClassification in line 12: that is a classifier, ..."; empty:
// nothing that is known and not modelled is called. Throws UserError about what is no Python.
std::string other_training_in(const Catalogue& data, std::string_view text,
                              const std::string& file);

}  // namespace stepsim
