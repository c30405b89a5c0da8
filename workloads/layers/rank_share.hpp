// This is what one rank runs of a model that several ranks share: narrower layers under tensor
// parallelism, a piece of each sequence under sequence parallelism, and what they hand each other
// for that.
#pragma once

#include <vector>

#include "workloads/layers/units.hpp"
#include "workloads/strategy/load.hpp"

namespace stepsim {

// Divides heads, feed-forward widths and vocabulary among the ranks of a tensor-parallel group.
Model model_of_rank(const Model& model, const Strategy& strategy);
// Returns the rank's piece of every sequence.
Load load_of_rank(const Load& load, const Strategy& strategy);
// Returns the part of it that a router sees where tokens are sent to experts: those that its rank
// has between blocks.
Load load_of_router(const Load& load, const Strategy& strategy);
// Token slots at which a rank keeps what stands between blocks.
double slots_between_blocks(const Job& job, const Strategy& strategy);

// Megatron's and Ulysses' hand-overs around the units of a layer, and what becomes smaller because
// tokens between blocks are divided. Linear layers may overlap their collectives:
// TensorLayers.
void share_layer(std::vector<Unit>& units, const Model& model, const Strategy& strategy,
                 const Load& load, bool overlaps);
void share_embedding(Unit& embedding, const Model& model, const Strategy& strategy,
                     const Load& load);
void share_head(std::vector<Unit>& head, const Model& model, const Strategy& strategy,
                const Load& load, bool overlaps);

}  // namespace stepsim
