// These make of a batch's responses what learners work on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/grpo/grpo.hpp"

namespace stepsim {

struct Packed {
  std::vector<double> packs;  // tokens of each, a multiple of the learners
  double tokens = 0;          // in those packs
  double dropped = 0;         // in packs beyond the multiple
};

// Packs greedily, in the order of arrival. Packs hold at most `pack_length` tokens, and fewer when
// that gives every learner one. What is left over behind the last multiple of `learners` is not
// trained on.
Packed pack(std::span<const std::int64_t> sequences, std::int64_t pack_length,
            std::size_t learners);

// Most tokens that `pack_rows` responses have which follow each other, with their prompts: of as
// many as a simulation draws, and not more than suffice to know the tail.
std::int64_t longest_rows(const Grpo& grpo);

// These are all learners' micro-batches of one optimizer step after the other. Learners meet in
// every collective, so the longest micro-batch of a round sets its time.
struct Updates {
  std::vector<std::vector<double>> rounds;  // [update][round]: tokens of the longest
  double micro_batches = 0;                 // of all learners
  double tokens = 0;                        // in those
  double dropped = 0;
};
Updates updates_of(const Grpo& grpo, std::span<const std::int64_t> sequences, std::size_t learners);

}  // namespace stepsim
