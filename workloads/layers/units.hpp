// A model's forward pass is a list of units: the modules that a framework calls, each with its
// tensors and its kernels. The backward pass, gathers, hooks and memory all follow from this list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/kernels/handover.hpp"
#include "workloads/kernels/kernels.hpp"
#include "workloads/model/parts.hpp"
#include "workloads/strategy/load.hpp"
#include "workloads/strategy/recompute.hpp"

namespace stepsim {

struct Unit {
  std::string name;  // "self_attn.q_proj", for people to read
  Role role = Role::none;
  bool adapter = false;          // low-rank matrices beside a frozen one of this role
  std::vector<double> tensors;   // elements of each, experts included
  std::vector<double> borrowed;  // those of a tied embedding, which its owner holds
  TensorClass kind = TensorClass::dense;
  LayerPart part = LayerPart::none;
  bool trained = true;       // else frozen: no gradient of its tensors, no optimizer
  bool narrow_once = false;  // of `narrow`: in the first forward pass alone
  // Every rank of a tensor-parallel group has so many of its elements whole, with a part of the
  // gradient: adapters beside divided matrices.
  double common = 0;
  double narrow = 0;  // of its elements those that are multiplied in a type of their own
  std::vector<KernelRow> forward, backward;
  // The two parts of the backward pass, where gradients of weights are made later than those of
  // inputs: what is no product goes with the inputs.
  struct Parts {
    std::vector<KernelRow> inputs, weights;
    double gradient = 0;  // bytes of that of its result, which waits for the weights
  };
  std::optional<Parts> parts;
  struct Memory {         // bytes
    double saved = 0;     // activations that its backward pass needs
    double gradient = 0;  // gradients of its inputs, until the unit before it has used them
    double forward = 0;   // beside what is saved, only while it runs forward
    double backward = 0;  // beside gradients of inputs and outputs, only while it runs backward
    double piece = 0;     // of what is there only while it runs: the largest tensor; 0: all is one
    double passing = 0;  // where nothing is kept, while it runs; 0: the larger of saved and forward
    // Selective recomputation tells these apart.
    double result = 0;  // of a single matrix product
    double core = 0;    // of what is saved, that of attention's own kernels
    double shared = 0;  // of `core`, the result that the product behind keeps as its input
    double normed = 0;  // of what is saved, the result of the norm before
    double acted = 0;   // of what is saved, the result of an activation inside
    // These say what is kept and what is computed again: see checkpointing.hpp.
    double named = 0;  // of what is saved, by functions that name it: until their graph is gone
    double kept = 0;   // waits from the forward pass on
    double input = 0;  // of the layer's input, at its first unit
  } memory;
  struct Loss {  // behind a head: the rows last forward and first backward
    std::size_t forward = 0, backward = 0;
    double saved = 0;     // bytes of what the unit saves
    double passing = 0;   // bytes while it runs, where nothing is kept
    double logits = 0;    // bytes, as the head gives them, unless it keeps them
    double gradient = 0;  // bytes of theirs, where that has a place of its own
  };
  std::optional<Loss> loss;
  struct HostStops {
    int reads = 0;        // values that the host reads back before each round
    bool agrees = false;  // the ranks agree on a number first, and the host waits for it
    double told = 0;      // bytes in which ranks tell each other how much comes; the host waits
  } stops;
  int owners = 0;           // modules that own the tensors
  int plain_modules = 0;    // modules without tensors that are called along with this one
  bool packed = false;      // its matrices are stored in few bits
  double unpacked = 0;      // of these, by the calls that each pass makes for them
  double adapted = 0;       // adapters, by the calls of their modules in each pass
  double padded = 0;        // columns that its adapter puts into a wider result
  bool own_input = false;   // an adapter saves a copy of its input that nobody shares
  double pieces = 0;        // products that the host launches one by one, for each expert
  double looped = 0;        // operators out of a library's own loop, with no module around them
  std::int64_t times = 1;   // units like this one after the other: experts of a loop
  std::int64_t rounds = 1;  // its kernels come so many times in one call: a loop inside a module
  double exchange = 0;      // bytes a rank sends in an all-to-all before the unit runs
  double once = 0;          // of that, one row for each token
  bool routes = false;      // tokens to other ranks: the host has calls of the dispatcher
  bool in_moe = false;      // in the MoE block, so under a leaf module if there is one

  Transfers hand;  // between ranks that share the layer or the sequence

  int core_rows = 0;             // the last so many forward rows are attention's own
  bool called_again = false;     // before the backward pass
  bool sends_again = false;      // then what it exchanges and hands over goes once more, too
  bool lingers = false;          // what that saves stays until the whole pass is over
  std::vector<KernelRow> again;  // what then runs

  double elements() const;
  double trained_elements() const { return trained ? elements() : 0; }
};

std::vector<Unit> layer_units(const Model& model, const Stack& stack, const Strategy& strategy,
                              const Load& load, std::int64_t layer);
// Returns what a layer without attention runs forward beside its matrices, over so many tokens.
std::vector<KernelRow> mixer_kernels(const Model& model, const Stack& stack, double tokens);
// Returns the units of a tower, layer by layer; what stands before them is with the first, and what
// makes tokens of patches with the last.
std::vector<std::vector<Unit>> tower_units(const Tower& tower, const Stack& stack,
                                           const Strategy& strategy, const Job& job);
Unit embedding_unit(const Model& model, const Stack& stack, const Strategy& strategy,
                    const Load& load);
std::vector<Unit> head_units(const Model& model, const Stack& stack, const Strategy& strategy,
                             const Job& job);
// Makes what runs behind the head's product a unit of its own, if it does: its backward pass is
// over before anybody asks for the head's parameters.
void part_from_loss(std::vector<Unit>& head);

// The kernels that a stack has fused, and those that a compiler fuses beyond them.
Stack::Fusion fusion_of(const Stack& stack, const Strategy& strategy);
// Norms of encoders are PyTorch's own, which are one kernel each.
Stack::Fusion fusion_for(const Model& model, const Stack& stack, const Strategy& strategy);

CrossEntropy cross_entropy_of(const Stack& stack, const Strategy& strategy);
AttentionKernel attention_of(const Stack& stack, const Strategy& strategy);
// Returns how adapters are kept and multiplied: as the scenario says, or as the stack has it.
AdapterType adapter_type_of(const Stack& stack, const Strategy& strategy);
// Returns whether experts are stored in one tensor per kind of matrix.
bool is_fused(const Experts& experts, ExpertLayout layout);

// A norm over rows of `width`, `residual` added on the way if that is fused into it.
KernelRow norm_row(const Operators& all, const Stack::Fusion& fused, double rows, double width,
                   bool residual);

}  // namespace stepsim
