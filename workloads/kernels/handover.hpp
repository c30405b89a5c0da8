// A hand-over is what ranks that share a layer or a sequence give each other around the kernels of
// a unit.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/kernels/kernels.hpp"

namespace stepsim {

enum class Handover : std::uint8_t {
  sum,             // partial results of all ranks of a tensor-parallel group
  collect,         // pieces of a sequence that its ranks hold
  scatter,         // partial results are summed, each rank keeps its piece
  heads,           // pieces of a sequence for heads, or back
  expert_collect,  // tokens of all ranks that share each expert
  expert_scatter,  // their partial results, summed
};

struct Transfer {
  Handover kind = Handover::sum;
  double bytes = 0;  // as the collective counts them
};

struct Transfers {
  std::vector<Transfer> arrive, leave;            // before and after the forward kernels
  std::vector<Transfer> arrive_again;             // before them where they run once more
  std::vector<Transfer> arrive_back, leave_back;  // the same of the backward kernels
  // The gradient of the input travels while that of the weights is computed.
  bool overlapped = false;
  // Attention runs in so many rounds, keys and values going on to the next rank meanwhile.
  std::int64_t rounds = 1;
  double passed = 0;       // bytes of keys and values
  double passed_back = 0;  // of their gradients

  bool any() const {
    return rounds > 1 || !arrive.empty() || !leave.empty() || !arrive_back.empty() ||
           !leave_back.empty();
  }
};

}  // namespace stepsim
