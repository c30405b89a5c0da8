// This finds keys whose values differ between two scenarios, defaults of stack and DeepSpeed's file
// included.
#pragma once

#include <optional>
#include <vector>

#include "scenarios/read/resolved.hpp"

namespace stepsim {

struct KeyPair {
  std::optional<ResolvedKey> a, b;  // one of them: a key that the other scenario does not have

  const ResolvedKey& either() const { return a ? *a : *b; }
};

// Returns the keys in the order of the tables, without titles and what was observed, which change
// no prediction, and without `constants`, which are figures.
std::vector<KeyPair> differing_keys(const Scenario& a, const Scenario& b);

}  // namespace stepsim
