// Responses of a batch become rows of slots: greedy, in the order of their arrival.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepsim {

struct Packed {
  std::vector<double> packs;  // tokens of each, a multiple of the learners
  double tokens = 0;          // in those packs
  double dropped = 0;         // in packs beyond the multiple
};

// Packs hold at most `pack_length` tokens, and fewer when that gives every learner one. What is
// left over behind the last multiple of `learners` is not trained on.
Packed pack(std::span<const std::int64_t> sequences, std::int64_t pack_length,
            std::size_t learners);

}  // namespace stepsim
