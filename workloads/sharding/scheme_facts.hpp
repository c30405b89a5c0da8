// Others ask these facts of a way of sharding, without writing its steps.
#pragma once

#include <vector>

#include "sim/base/units.hpp"
#include "sim/traffic.hpp"
#include "workloads/strategy/stack.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// This says how the ranks that share the states come by whole matrices, for optimizers that need
// these.
struct WholeMatrices {
  bool flat = true;         // an optimizer is given pieces of one long vector
  bool dealt = false;       // a rank takes whole matrices in turn; else all that its part touches
  bool everywhere = false;  // each rank updates all
  bool by_shape = false;    // those of each shape are dealt out for themselves
  bool partitioned = true;  // a rank keeps the momentum of its part; else of what it updates
  double momentum = 4;      // bytes of a number
  double gathered = 0;      // bytes of each number that all ranks get before
  double returned = 0;      // and after
  double exchanged = 0;     // bytes of each number that go to the rank that updates it, and back
};

struct SchemeFacts {
  bool gathers_parameters = false;   // a rank stores a part of them, and gathers them to use them
  bool shares_states = true;         // a rank updates a part
  bool scatters_gradients = false;   // of a reduction each rank gets its part alone
  bool has_sub_groups = false;       // the optimizer takes sub-groups, not tensors
  bool sends_back = false;           // what was gathered to be saved goes out again
  bool takes_apart = false;          // gathers and reductions have memory on streams of their own
  bool keeps_apart = false;          // so has the rank's part of a reduction, which it keeps
  bool offloads_optimizer = false;   // can have it on the host
  bool offloads_parameters = false;  // and them
  bool offloads_together = false;    // either both of these or none
  bool updates_stored = false;       // what a rank stores is what its optimizer updates
  double stored_bytes = bytes_16;    // of a parameter, as it is kept and saved
  double master_bytes = 0;           // of its fp32 copy beside it
  Rank secondary = 1;                // ranks of a second, nearer partition
  WholeMatrices matrices{};
  const Constant<Ratio> Stack::*slack = &Stack::allocator_slack;
};
SchemeFacts facts_of(const Strategy& strategy);

// The stages of DeepSpeed that share out more than this strategy does and that it could have.
std::vector<Sharding> further_stages(const Strategy& strategy);

}  // namespace stepsim
