// Models by the names that other programs have for them: those of Hugging Face, and folders that
// an earlier run has written.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stepsim {

class Catalogue;

struct NamedModel {
  std::string name;                // of the catalogue, or the path of a config.json
  std::string how;                 // empty: it is what was said; else why it is taken to be
  std::vector<std::string> files;  // that led to it
};

// `file` is the one that names the model: a path is looked for beside it, and the folder of an
// earlier run is known by the `output_dir` of a file in the same folder.
std::optional<NamedModel> find_named_model(const Catalogue& data, const std::string& said,
                                           const std::string& file);

// Returns a model of as many parameters as one of these names says, for one that nothing is known
// of; nothing where none says it, or no model comes near. `kind` is what the file says besides of
// the family: "LlamaForCausalLM".
std::optional<NamedModel> model_of_size(const Catalogue& data,
                                        const std::vector<std::string>& names,
                                        const std::string& kind = "");

// Returns whether two paths name the result of the same run: "/outputs/sft" and
// "sft/checkpoint-40".
bool same_run(const std::string& one, const std::string& other);

}  // namespace stepsim
