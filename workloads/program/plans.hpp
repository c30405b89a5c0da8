// The traffic that a training job may have, by name.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/collectives/plan.hpp"

namespace stepsim {

// A signal is an all-reduce of a number or two: its latency is all there is to it.
enum class Plan : std::uint8_t {
  all_gather,  // between the ranks that share one copy of the states, as the next two
  reduce_scatter,
  all_reduce,
  signal,
  exchange,       // between the ranks that share a set of experts
  expert_reduce,  // between the ranks that hold the same experts
  expert_gather,
  to_host,
  to_device,
  cpu_update,      // the optimizer on host cores, which is bound by host memory
  replica_reduce,  // between the ranks that hold the same shard
  tensor_sum,      // between the ranks that share every layer
  tensor_collect,
  tensor_scatter,
  swap_heads,        // between the ranks that share a sequence
  ring_pass,         // from each of them to the next
  secondary_gather,  // between the ranks of a secondary partition
  inside_exchange,   // quantised gradients: in the nodes, then between them
  across_exchange,
  expert_scatter,  // between the ranks that hold the same experts
  expert_sum,      // between the ranks that share each expert
  expert_collect,
  rail_exchange,  // between ranks of equal place in the nodes of an expert-parallel group
  node_exchange,  // between those of such a group that share a node
  from_drive,     // past the page cache, as fast as the drives are
  to_drive,
  neighbours,   // of other jobs: nobody waits for it
  tensor_pass,  // pieces of tokens from rank to rank of a layer, by the devices' copy engines
  // These are the plans of a pipeline.
  to_next_stage,  // every rank to the one of equal place in the next stage, the last to the first
  to_previous_stage,  // and the other way
  end_stages,         // a sum over ranks of equal place in the first and the last stage
  to_copy,            // every rank to the one that has the same pieces of the model
  // While a job is saved, or goes on from what was saved.
  first_to_host,  // the ranks that hold one whole model between them
  first_to_file,
  experts_to_host,  // the ranks that hold one set of all experts
  experts_to_file,
  owners_to_host,  // the ranks that hold one copy of all states
  owners_to_file,
  owners_from_file,
  all_from_file,  // every rank reads the same
  share_out,      // from the first rank of a shard to the others
  // An optimizer that updates whole matrices sends parts to the rank that updates them, and back.
  deal_matrices,
  deal_experts,
};
inline constexpr std::size_t plan_count = static_cast<std::size_t>(Plan::deal_experts) + 1;
constexpr std::size_t index(Plan plan) {
  return static_cast<std::size_t>(plan);
}

// Plans that are not used are empty: they take no part in folding.
class Plans {
 public:
  CollectivePlan& operator[](Plan plan) { return plans_[index(plan)]; }
  const CollectivePlan& operator[](Plan plan) const { return plans_[index(plan)]; }

  // Returns the plans in the order of the names, so that index() finds each.
  std::vector<CollectivePlan> take() {
    return {std::make_move_iterator(plans_.begin()), std::make_move_iterator(plans_.end())};
  }

 private:
  std::array<CollectivePlan, plan_count> plans_;
};

}  // namespace stepsim
