// What one iteration of an inference engine costs, and how many tokens its cache holds.
#pragma once

#include <vector>

#include "topology/cluster.hpp"
#include "workloads/grpo/engine_stack.hpp"
#include "workloads/grpo/grpo.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

class DecodeModel {
 public:
  DecodeModel(const Cluster& cluster, const Model& model, const EngineStack& stack,
              const Grpo& grpo);

  // One token for each of `sequences`, which have `cached` tokens of context in all.
  double iteration(double sequences, double cached) const;
  // The part of it that grows with the context, for each cached token.
  double per_cached(double sequences, double cached) const;
  // Prompts that are computed beside the running sequences: their tokens, and the pairs of tokens
  // that attend to each other in all layers.
  double prefill(double tokens, double pairs) const;
  double pairs_of(double tokens) const;  // of one causal prompt

  // As if generating cost no time.
  void set_free() { free_ = true; }

  double weight_bytes() const { return weight_bytes_; }  // of one GPU
  double cache_bytes() const { return cache_bytes_; }    // of one GPU; not above zero: no start
  double bytes_per_token() const { return bytes_per_token_; }
  double capacity() const;  // tokens that the engine's cache holds

 private:
  struct Product {  // a matrix product of every layer of a kind, on one GPU
    double count = 0;
    double bytes = 0;  // of its weights
    double flops_per_token = 0;
    double experts = 0;    // stored; 0: no experts
    double per_token = 0;  // of them that a token meets
  };
  void add_products(const Model& model, double tp);
  double products(double tokens) const;
  // Tokens of the cache that an iteration looks at, in all layers.
  double looked_at(double sequences, double cached) const;
  double attend(double looked_at) const;  // seconds

  std::vector<Product> products_;
  double bandwidth_ = 0, rate_ = 0, blend_ = 3, start_ = 0, stream_ = 0;
  double attention_per_pair_ = 0;    // of a prompt
  double attention_per_cached_ = 0;  // of a new token and one that it looks at, if not read for
  double fixed_ = 0, per_sequence_ = 0, host_floor_ = 0;
  double reduce_fixed_ = 0, reduce_per_token_ = 0;
  double weight_width_ = 2, speed_up_ = 1;
  double weight_bytes_ = 0, cache_bytes_ = 0, bytes_per_token_ = 0, token_share_ = 0;
  double full_layers_ = 0, window_layers_ = 0, window_ = 0, layer_token_bytes_ = 0;
  double flops_per_token_ = 0;
  bool free_ = false;
  mutable std::vector<double> products_of_;  // by number of sequences, once asked for
};

}  // namespace stepsim
