// A model's forward pass as a list of units: the modules that a framework calls, each with its
// tensors and its kernels. The backward pass, gathers, hooks and memory all follow from this list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/kernels.hpp"
#include "workloads/model.hpp"
#include "workloads/strategy.hpp"

namespace stepsim {

struct Unit {
  std::string name;             // "self_attn.q_proj"
  std::vector<double> tensors;  // elements of each, experts included
  TensorClass kind = TensorClass::dense;
  std::vector<KernelRow> forward;
  std::vector<KernelRow> backward;
  double saved_bytes = 0;  // activations kept for the backward pass when nothing is recomputed
  int syncs = 0;           // values that the host reads back before it can go on
  int owners = 0;          // modules that own the tensors
  int plain_modules = 0;   // modules without tensors that are called along with this one
  std::int64_t times = 1;  // units like this one after the other: experts of a loop
  double exchange = 0;     // bytes a rank sends in an all-to-all before the unit runs
  bool in_moe = false;     // in the MoE block, so under a leaf module if there is one

  double elements() const;
};

// Work of one micro-batch on one rank.
struct Load {
  double tokens = 0;    // token slots that are computed
  double attended = 0;  // keys seen, summed over queries
};
Load load_of(const Model& model, const Job& job, std::int64_t layer);

std::vector<Unit> layer_units(const Model& model, const Stack& stack, const Strategy& strategy,
                              const Load& load, std::int64_t layer);
Unit embedding_unit(const Model& model, const Load& load);
std::vector<Unit> head_units(const Model& model, const Stack& stack, const Job& job,
                             const Load& load);

}  // namespace stepsim
