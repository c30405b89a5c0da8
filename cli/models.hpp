// A model as a person or a program reads it.
#pragma once

#include <string>

#include "cli/result_kinds.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

struct ModelEntry {
  Model model;
  std::string title;   // of a catalogue file; the architecture's name for a config.json
  std::string source;  // where the dimensions come from
};

// Finds the model by name or path, as load_model takes it.
ModelEntry find_model(const Catalogue& data, const std::string& name_or_path);
std::string model_text(const ModelEntry& entry);
Records model_records(const ModelEntry& entry);

}  // namespace stepsim
