// These laws hold for every scenario that is not refused, whatever it says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "scenarios/scenario.hpp"

namespace stepsim {

struct LawVerdict {
  std::vector<Problem> refused{};  // why it is no scenario, or cannot run
  std::string law{};               // the one that does not hold; empty: all do
  std::string detail{};            // how it is broken
  std::vector<std::pair<std::string, std::string>> seen{};  // {"model", "llama-3.1-8b"}

  static auto fields(auto& self) {
    return std::tie(self.refused, self.law, self.detail, self.seen);
  }
};

// Examines the scenario. It tries some of the laws that take another prediction, and others with
// another seed.
LawVerdict examine(const Catalogue& data, std::span<const Setting> settings, std::uint64_t seed);

}  // namespace stepsim
