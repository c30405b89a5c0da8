// These are all keys of a scenario, each with its value and where that comes from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/keys/key.hpp"
#include "scenarios/scenario.hpp"

namespace stepsim {

struct ResolvedKey {
  std::string block;  // "strategy.offload"; empty: the top of the file
  const KeyFacts* facts = nullptr;
  std::string value;     // as a file would say it; empty: not set
  bool of_grpo = false;  // the words for it are those of a GRPO job
  bool said = false;     // by anybody; else it is the default
  Origin origin;         // of what was said
  bool matters = true;   // the value changes something, other keys being what they are

  std::string path() const;  // "strategy.offload.ratio"
};

// Returns the keys in the order of the tables. For a default scenario these are the defaults.
std::vector<ResolvedKey> resolved_keys(const Scenario& scenario);

// Writes "line 12", "--set", "ds.json:4", "default".
std::string origin_text(const ResolvedKey& key);
// Writes the value as a file would say it, or in words what a key that is not set means.
std::string value_text(const ResolvedKey& key);

// Writes the whole scenario as one file: every key that somebody said, DeepSpeed's file included.
std::string scenario_yaml(const Scenario& scenario);

// The keys that a document says, for Scenario::said.
std::vector<SaidKey> said_keys(const Table& root, bool grpo);

// This finds keys whose values differ between two scenarios, defaults of stack and DeepSpeed's file
// included.
struct KeyPair {
  std::optional<ResolvedKey> a, b;  // one of them: a key that the other scenario does not have

  const ResolvedKey& either() const { return a ? *a : *b; }
};

// Returns the keys in the order of the tables, without titles and what was observed, which change
// no prediction, and without `constants`, which are figures.
std::vector<KeyPair> differing_keys(const Scenario& a, const Scenario& b);

}  // namespace stepsim
