// This reads a DeepSpeed configuration file as DeepSpeed and the Hugging Face integration read it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/config.hpp"
#include "topology/catalog.hpp"
#include "workloads/model/model.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// Keys that were set over a scenario with a DeepSpeed file stand over that, too: the scenario's
// text names them from then on, under this key of its strategy.
inline constexpr std::string_view deepspeed_except = "deepspeed_except";

// A key of a scenario that DeepSpeed's file may say as well, and the key there.
struct DeepSpeedRival {
  std::string key, theirs;
};
// Returns all of them, as deepspeed.yaml has them.
const std::vector<DeepSpeedRival>& deepspeed_rivals(const Catalogue& data);

// This is what the scenario says besides. Values of the file win where it has them, but for keys
// that were set over the scenario: "strategy.zero", or "strategy.offload" with all below it.
struct DeepSpeedQuestion {
  const Catalogue& data;
  const Strategy& strategy;
  const Job& job;
  const Model& model;
  std::int64_t ranks = 1;
  std::vector<std::string> said{};  // rivals that the scenario says
  std::vector<std::string> set{};
  std::vector<std::string> optimizers{};  // that are modelled
  bool some_learn = false;                // of the ranks: others generate
};

struct DeepSpeedImport {
  Strategy strategy;
  Job job;
  // Keys of the scenario whose value is the file's now, each with its line there, if it has one.
  std::vector<std::pair<std::string, int>> told;
  std::vector<std::string> notes;  // who gave way, and what makes no difference or is not modelled
};

// Returns what the file says of rivals, by the scenario's keys; nothing of a file that cannot be
// read.
std::map<std::string, std::string> deepspeed_words(const Catalogue& data, const std::string& path);

// "auto" becomes what the Hugging Face integration would put there. Throws UserError on keys that
// contradict each other or the scenario.
DeepSpeedImport read_deepspeed(const std::string& path, const DeepSpeedQuestion& question);

// Reads train_batch = micro x accumulation x ranks; any two give the third by whole division, and
// the product must hold. "auto" is what the trainer says; what is absent DeepSpeed makes up itself:
// one micro-batch to a step. The product gives way to a factor that was set.
void read_batch(const Table& root, const DeepSpeedQuestion& question, DeepSpeedImport& result);

// Returns whether a key, or a whole block that holds it, was set over the scenario.
bool was_set(const DeepSpeedQuestion& question, std::string_view key);

}  // namespace stepsim
