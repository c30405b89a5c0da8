// Many families of config.json share these: keys that mean the same, read with their bounds and the
// rules across them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/config.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

// No model comes near these, and within them a count of parameters fits into 63 bits.
struct HfLimits {
  std::int64_t layers = 1000, width = 1'000'000, heads = 10'000, experts = 1024, shared = 64;
  std::int64_t tokens = 1'000'000'000, vocabulary = 100'000'000, taps = 64;
};
inline constexpr HfLimits hf_limits;

// Heads and their width, which follows from `hidden` where head_dim is not given.
struct HeadKeys {
  std::string_view heads;
  std::string_view kv_heads;  // missing, or without a key: as many as heads
  std::string_view hidden;
};
// These hold for a family that writes only what is different; 0: it must be given, or follows from
// the others.
struct UsualHeads {
  std::int64_t heads = 0, kv_heads = 0, width = 0;
};
void read_heads(const Table& table, const HeadKeys& keys, Model& model,
                const UsualHeads& usual = {});

// These are what a family spells otherwise than Llama, or has where nothing is said; 0: it must be.
struct DecoderKeys {
  std::string_view width = "intermediate_size", depth = "num_hidden_layers", words = "vocab_size",
                   reach = "max_position_embeddings";
  bool tied = false;
  std::int64_t layers = 0, hidden = 0, feed_forward = 0, vocabulary = 0, positions = 0;
  UsualHeads heads{};
};
// Reads layers, widths, heads, vocabulary, positions, tied embeddings.
Model read_decoder(const Table& table, const DecoderKeys& keys = {});

// Reads how queries, keys and values come out of narrow vectors; the heads are there already.
void read_latent(const Table& table, Model& model, std::int64_t value_width = 0);

// The share of a head that has positions: under the family's key, or `usual`.
void read_rotary(const Table& table, std::string_view key, double usual, Model& model);

// Returns whether engines keep the state of a mixer in 32 bits; where nothing is said, as the
// family does.
bool keeps_wide_state(const Table& root, std::string_view key, bool usual);

struct ExpertKeys {
  std::string_view count, width;
  std::string_view shared_count;  // shared experts, each as wide as a routed one; empty: no key
  std::string_view shared_width;  // or how wide all of them are; empty: no key
  std::string_view per_token = "num_experts_per_tok";
};

Experts read_experts(const Table& table, const ExpertKeys& keys);

// Reads which layers see everything, where a window binds the others: a list in `layer_types`, if
// there is one, overrules what the family does by itself.
void read_layer_types(const Table& table, Model& model);
// Does the same from any list; `key` is where a list that follows no period is reported.
void set_full_layers(const Table& table, std::string_view key, Model& model,
                     const std::vector<bool>& full);

// Sets how the tokens of each layer hear of each other; what follows is as the experts say.
void set_kinds(Model& model, const std::vector<LayerKind::Mixes>& mixes);
// Does the same from a list of words.
struct MixesWord {
  std::string_view word;
  LayerKind::Mixes mixes = LayerKind::Mixes::attention;
};
void set_kinds(const Table& table, std::string_view key, Model& model,
               const std::vector<MixesWord>& words);

// Sets biases in query, key, value and output alike.
void set_bias(Model& model, bool everywhere);
// Reads `sliding_window` of all layers but those that layer_types or the family exempts.
void read_window(const Table& root, Model& model);
// Qwen's is off unless switched on, and leaves the first max_window_layers alone.
void read_qwen_window(const Table& root, Model& model);

std::vector<std::int64_t> integers(const Table& table, std::string_view key);

}  // namespace stepsim
