// This says what one step of an inference engine costs, and how many tokens its cache holds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "topology/cluster.hpp"
#include "workloads/grpo/engine_stack.hpp"
#include "workloads/grpo/grpo.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

// A batch is what is computed together.
struct StepBatch {
  double decoding = 0;  // sequences that get one token each
  double cached = 0;    // tokens of context that these have in all
  double prompt = 0;    // tokens of prompts, and of what is computed again
  double pairs = 0;     // of these with the tokens that they attend to, in all layers
  double sampled = 0;   // prompts whose end is among them: each gets a token too
};

// Says in words what so many GPUs of an engine cannot share. They have whole heads; a group of
// key-value heads that are fewer than they is copied, as is a single one of a state
// (models/llama.py of vllm-project/vllm and of sgl-project/sglang: total_num_kv_heads % tp_size or
// the other way).
std::vector<std::string> unshared(const Model& model, std::int64_t gpus);

// This is a forward pass of the learners' own model: all of it, and for how long the GPU works.
struct PassTime {
  double all = 0, device = 0;
};
using OwnPass = std::function<PassTime(double tokens)>;

// A step of learners that generate has these parts: the GPU waits for launches, computes, reads and
// copies the cache; the host draws tokens and prepares what comes next.
struct StepParts {
  double launches = 0, passes = 0, cache = 0, between = 0;

  double all() const { return launches + passes + cache + between; }
};

class DecodeModel {
 public:
  DecodeModel(const Cluster& cluster, const Model& model, const EngineStack& stack,
              const Grpo& grpo);

  double step(const StepBatch& batch) const;
  // Returns the step's time on GPUs that have sequences of their own: attention of each, experts of
  // all together.
  double step(std::span<const StepBatch> ranks) const;
  // One token for each of `sequences`, which have `cached` tokens of context in all.
  double iteration(double sequences, double cached) const;
  // Returns the time of so many iterations one after the other, the context growing, none shorter
  // than `pace`.
  double steps(double sequences, double cached, std::int64_t count, double pace) const;
  // Returns the part of an iteration that grows with the context, for each cached token.
  double per_cached(double sequences, double cached) const;
  double pairs_of(double tokens) const;  // of one causal prompt

  // Makes all steps take no time.
  void set_free() { free_ = true; }
  // Makes a step a forward pass of the learners, with the cache beside it.
  void take_passes(OwnPass pass) { pass_ = std::move(pass); }
  StepParts parts(const StepBatch& batch) const;
  // Returns the bytes that so many rows of so many tokens take while they are generated.
  double generating_bytes(double rows, double tokens) const;

  double weight_bytes() const { return weight_bytes_; }  // of one GPU
  double cache_bytes() const { return cache_bytes_; }    // of one GPU; not above zero: no start
  double bytes_per_token() const { return bytes_per_token_; }
  double capacity() const;  // tokens that the engine's cache holds
  // Returns how many of the cache's tokens a sequence of so many takes: its own, or blocks for them
  // and for the states of layers without attention.
  double taken_by(double tokens) const;
  double block() const { return block_; }  // tokens that are handed out together
  std::int64_t state_blocks() const { return state_blocks_; }  // of a sequence, whatever its length
  double state_bytes() const { return state_bytes_; }          // of a sequence, on one GPU
  double most_sequences() const;                               // for which there are states
  // GPUs that have sequences of their own, each with a batch at most.
  std::int64_t batches() const { return batches_; }

 private:
  struct Product {  // a matrix product of every layer of a kind, on one GPU
    double count = 0;
    double bytes = 0;  // of its weights
    double flops_per_token = 0;
    double experts = 0;    // stored; 0: no experts
    double per_token = 0;  // of them that a token meets
    bool head = false;     // only rows that a token is drawn from
  };
  // This is a way to reduce so many rows at most between the engine's GPUs.
  struct Reduction {
    double fixed = 0, per_row = 0, most = 0;
  };
  void add_host(const Cluster& cluster, const Model& model, const EngineStack& stack,
                const Grpo& grpo);
  void add_products(const Model& model, double tp);
  void add_attention(const Model& model, const Gpu& gpu, const EngineStack& stack,
                     const Grpo& grpo);
  void add_room(const Model& model, const Gpu& gpu, const EngineStack& stack, const Grpo& grpo);
  void add_mixers(const Cluster& cluster, const Model& model, const EngineStack& stack,
                  const Grpo& grpo, double gpus);
  void add_cache(const Model& model, const EngineStack& stack);
  void add_reductions(const Cluster& cluster, const Model& model, const EngineStack::Reduction& own,
                      std::uint32_t gpus);
  double product(const Product& p, double rows) const;
  double products(double rows) const;  // of the layers, with what is between them
  double one_step(const StepBatch& batch) const;
  double own_time(const StepBatch& batch, double rows) const;
  double own_products(double rows) const;
  double expert_products(double rows) const;
  double head(double rows) const;
  double reductions(double rows) const;
  double expert_share(double tokens_each) const;
  double padded(double tokens, bool prompts) const;
  // Returns the tokens of the cache that an iteration looks at, in all layers.
  double looked_at(double sequences, double cached) const;
  double attend(double looked_at, double readers) const;  // seconds
  double mix(const StepBatch& batch) const;  // of layers without attention, beside products
  int regime(double sequences, double cached, double pace) const;

  std::vector<Product> products_;
  double bandwidth_ = 0, rate_ = 0, blend_ = 3, start_ = 0, stream_ = 0;
  double attention_per_pair_ = 0;    // of a prompt
  double attention_per_cached_ = 0;  // of a new token and one that it looks at, if not read for
  double mixed_readers_ = 1;         // times that the cache is read when prompts are in the batch
  double copies_ = 0;                // times that it is read and written beside that
  double readers_ = 1, copied_layer_ = 0, logits_row_ = 0;  // where it is copied; bytes
  double fixed_ = 0, per_sequence_ = 0, host_floor_ = 0;
  double small_ = 0;  // kernels beside products: on the device, so a slow host hides them
  double graph_step_ = 1, graph_largest_ = 0;
  std::vector<double> graph_answers_;
  std::vector<Reduction> reductions_;
  std::vector<EngineStack::ExpertRate> expert_rates_;
  double weight_width_ = 2, speed_up_ = 1;
  double weight_bytes_ = 0, cache_bytes_ = 0, bytes_per_token_ = 0, token_share_ = 0;
  double own_share_ = 0;  // of a sequence's cache that a GPU looks at
  double full_layers_ = 0, window_layers_ = 0, window_ = 0, layer_token_bytes_ = 0;
  std::int64_t batches_ = 1;
  // These are for layers without attention: what they do over prompts, once a step and for each
  // token.
  double mixers_ = 0, state_bytes_ = 0, mix_start_ = 0, mix_per_token_ = 0;
  double states_kept_ = 1;  // of a sequence in each of them
  double pool_bytes_ = 0;   // that their states have for themselves
  bool pooled_ = false;
  double block_ = 16;
  std::int64_t state_blocks_ = 0;
  double stretch_ = 1;  // all takes so many times as long
  OwnPass pass_;
  bool free_ = false;
  mutable std::vector<double> products_of_, own_of_, experts_of_, head_of_;  // by rows, once asked
};

}  // namespace stepsim
