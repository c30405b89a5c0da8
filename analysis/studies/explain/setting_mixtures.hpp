// A mixture is a scenario between two others: A with some of its settings as B has them.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace stepsim {

// A source is where a scenario came from, so that it can be read again.
struct ScenarioSource {
  std::string source;  // path or name
  std::vector<Setting> settings;
  const Scenario& scenario;
};

// A key or a constant that the two have different values of.
struct DifferingSetting {
  std::string key;
  std::string a, b;            // as a file would say it; "null": not set
  std::string text_a, text_b;  // for a reader
  bool said_a = true, said_b = true;
  bool matters = true;  // in A or in B
};

// Returns every key that differs and can be set, defaults included, and constants that somebody
// gave. What a DeepSpeed file or a recipe says shows in the keys that it sets, and the network that
// a node brings with it comes with the node.
std::vector<DifferingSetting> differing_settings(const Catalogue& data, const ScenarioSource& a,
                                                 const ScenarioSource& b);

// This says of each setting whether it is as in B.
using Joined = std::vector<bool>;

// A's scenario with these settings as B has them, and all others as they are in A, also where their
// defaults would follow. A setting that makes no sense before others have joined waits for them.
Scenario mixture(const Catalogue& data, const ScenarioSource& a,
                 const std::vector<DifferingSetting>& settings, const Joined& joined);

}  // namespace stepsim
