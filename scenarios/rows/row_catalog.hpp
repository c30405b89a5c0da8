// The words by which tables of training steps name what the catalogue has.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/read/recipes.hpp"
#include "scenarios/rows/measured.hpp"
#include "topology/gpu.hpp"
#include "workloads/grpo/engine_stack.hpp"
#include "workloads/strategy/stack.hpp"

namespace stepsim {

struct RowCatalog {
  std::string data;  // the folder of the catalogue
  MachineWords machines;
  struct NodeSize {
    std::string name, gpu;
    std::uint32_t gpus = 0;
    double peak = 0;  // FLOP/s of a GPU: dense, in bf16
  };
  std::vector<NodeSize> nodes;
  struct EngineName {
    std::string name, title;
    EngineStack stack;
  };
  std::vector<EngineName> engines;
  std::map<std::string, Gpu> gpus;
  std::vector<MachineWords::Entry> stacks;
  std::vector<MachineWords::Entry> learners;  // stacks, by how tables of GRPO name learners
  std::vector<MachineWords::Entry> precisions;
  std::vector<std::string> gathered;           // of these, what FSDP can gather parameters in
  std::map<std::string, std::string> titles;   // of stacks
  std::map<std::string, std::string> vendors;  // of GPUs, and of the GPUs that stacks are for
  std::map<std::string, RowVocabulary> vocabularies;
  struct ModelSize {  // 0: its file does not say
    double layers = 0, hidden = 0, experts = 0;
  };
  std::map<std::string, ModelSize> models;
  std::vector<std::pair<std::string, std::string>> aliases;  // other names of models, and theirs
  std::vector<Recipe> recipes;

  const NodeSize* node(std::string_view name) const;
  const EngineName* engine(std::string_view name) const;
};
RowCatalog row_catalog(const std::string& data);

// Returns what is known under a name; an empty value for an unknown one.
template <class Value>
Value known_of(const std::map<std::string, Value>& all, const std::string& name) {
  const auto place = all.find(name);
  return place == all.end() ? Value{} : place->second;
}

// Returns the name whose words hold the longest that the text contains; "" when none does.
std::string best_name(const std::vector<MachineWords::Entry>& entries, std::string_view text);
// The name whose word stands first in the text, of those that begin there the longest: what comes
// first in "LLM Foundry on PyTorch FSDP" is what drives the rest.
std::string first_name(const std::vector<MachineWords::Entry>& entries, std::string_view text);
// A model whose name has the same letters and numbers; what people add to it behind does not count.
std::string same_model(const RowCatalog& catalog, std::string_view name);

}  // namespace stepsim
