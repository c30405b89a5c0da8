// This reads a model from the config.json of Hugging Face: the architecture's name picks the
// reader.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/base/config.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

struct Architecture {
  std::string name;  // as `architectures` in config.json spells it
  std::string summary;
  std::string family;  // that it is read as
  bool tower = false;  // the text tower of a model that has others beside it
};
// Returns those of architectures.yaml.
std::span<const Architecture> architectures();

// Reads a config.json and notes what is wrong in the table's document. Keys that do not decide
// about tensors and modules are not asked for.
Model read_hf_config(const Table& root, std::string name);

// Returns how many experts the mapping at `path` of a file says that a layer has, without reading
// it; nothing for a dense model.
std::optional<std::string> experts_said(const Document& file, const std::string& path);

// The file itself, where a path leads to a folder that holds one.
std::string config_file(const std::string& path);
// The path of a config.json, or of the folder that holds one; the model is named after the folder.
Model load_hf_config(const std::string& path);

}  // namespace stepsim
