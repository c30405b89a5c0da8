// This lists what a model is made of, piece by piece: it is the only list of its matrices. Stored
// tensors, counts of parameters, work for a token, the units of a training step and the products of
// an inference engine all come from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/model/model.hpp"

namespace stepsim {

// A role says what a piece is for, however its framework calls it. Those without a matrix are
// called between the others; the last ones of a block are what a training step adds.
enum class Role : std::uint8_t {
  none,
  container,  // called, with hooks of its own, and nothing else
  embedding,
  positions,
  embedding_norm,
  attention_norm,
  query,
  key,
  value,
  query_key_value,    // all three in one matrix
  narrow_query,       // latent attention: down to the narrow vectors ...
  latent,             // ... of queries, and of keys and values
  narrow_query_norm,  //
  latent_norm,        //
  wide_query,         // ... and up from them again
  wide_latent,        //
  index_query,        // of what chooses the tokens that are attended to
  index_key,          //
  index_key_norm,     //
  index_weights,      // how much each of its heads counts
  index_scores,       // of all tokens before, and the largest of them
  query_norm,
  key_norm,
  attend,          // scores, probabilities, and values weighed by them
  attention_gate,  // weighs the result
  attention_output,
  attention_result_norm,  // behind it
  attention_residual,
  mixer_in,        // in place of attention: what is convolved, and what weighs its result
  mixer_gates,     // of each head: how much is forgotten, and how much is put in
  mixer_weigh,     // where each comes alone: what weighs the result, ...
  mixer_put,       // ... how much is put in ...
  mixer_forget,    // ... and how much is forgotten
  mixer_constant,  // vectors, and one matrix that nothing is multiplied with
  convolution,     // over the last tokens, channel by channel
  mixer_narrow,    // Mamba: down to time steps and to what is put in and read out ...
  step_norm,       // ... their norms
  put_norm,        //
  read_norm,       //
  mixer_steps,     // ... and up to the time step of each channel
  mix,             // the state, token by token or chunk by chunk
  mixer_norm,      // of the result, weighed by what came in
  mixer_out,
  feed_forward_norm,
  gate,
  up,
  gate_up,  // both in one matrix
  activation,
  down,
  expert_gate,
  expert_up,
  expert_gate_up,
  expert_down,
  experts,      // all matrices of an expert, or of all of them, in one unit
  move_tokens,  // to experts and back
  router,
  shared_gate,  // of the expert that every token meets
  shared_up,
  shared_activation,
  shared_down,
  shared_weight,  // weighs its result
  feed_forward_result_norm,
  feed_forward_residual,
  final_norm,
  patches,     // of a tower: the matrix that patches are multiplied with, ...
  places,      // ... where they stand, and tokens of no patch
  tower_norm,  // before and behind its layers
  projector,   // makes tokens of patches
  projector_norm,
  head_dense,  // before an encoder's head
  head_norm,
  head,
  score,  // a head of labels
  loss,   // over logits that the head has made
};

// Returns whether the role belongs to attention, with its projections, but without the norm before
// it.
bool in_attention(Role role);
bool in_shared_expert(Role role);
bool in_mixer(Role role);  // with its matrices, but without the norm before it

struct Part {
  std::string name;  // "self_attn.q_proj"
  Role role = Role::none;
  // This is a matrix of in x out; in = 0: a vector of `out`; both 0: a container.
  std::int64_t in = 0, out = 0;
  bool bias = false;
  TensorClass kind = TensorClass::dense;
  std::int64_t copies = 1;  // experts
  bool stacked = false;     // in one tensor for all copies
  bool borrowed = false;    // holds no matrix: a tied head, whose is another part's; a bare norm

  bool multiplies() const;        // a token is multiplied with it, not looked up in it
  std::int64_t weights() const;   // of one copy, without bias, whoever holds them
  std::int64_t elements() const;  // that it holds, all copies
  std::int64_t tensors() const;   // that it holds, all copies
};

// These return the parts in calling order; experts come once, with their number.
std::vector<Part> layer_parts(const Model& model, std::int64_t layer);
std::vector<Part> outer_parts(const Model& model);  // beside the layers

// Returns the layers of a tower as a model of that many, without table and head.
Model layers_of(const Tower& tower);
// These are the tower's parts before and behind its layers; the projector's are the last.
std::vector<Part> parts_before(const Tower& tower);
std::vector<Part> parts_behind(const Tower& tower);

}  // namespace stepsim
