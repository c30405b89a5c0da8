// This reads a claim in one line: "A is 2x faster than B".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/studies/claims/claim.hpp"

namespace stepsim {

struct SentenceQuestion {
  std::vector<ClaimScenario> scenarios;  // their names here are what the sentence calls them
  std::optional<double> price;           // for a GPU and an hour: what "costs" means
};

// Reads a sentence, which may say:
//   A is [about|at least|at most] 2x|20 % faster|slower than B
//   A needs [...] 20 % less|more memory than B
//   A needs under|over|about|at least|at most 70 GB
//   A takes under|over|about|at least|at most 20 s [a step] | 30 h in all
//   A costs under|over|about|at least|at most 500
//   A fits | A does not fit
// A number without a word counts as about, which is a tenth to either side. Faster is tokens per
// second of all GPUs. Throws UserError on anything else.
Claim claim_of_sentence(const std::string& sentence, const SentenceQuestion& question);

}  // namespace stepsim
