// A transformer is a value: its widths, and from them every parameter tensor and module, exactly.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/member_words.hpp"

namespace stepsim {

enum class TensorClass : std::uint8_t { dense, expert, embedding, norm };
inline constexpr auto tensor_class_names = words_through<TensorClass::norm>();

// Queries, keys and values that come out of narrow ones, as DeepSeek has it: keys and values of a
// token out of one vector of `width`, and one part of the keys, with positions, that all heads
// share.
struct Latent {
  std::int64_t width = 0;
  std::int64_t query_width = 0;  // 0: queries come straight from the input
  std::int64_t rotary = 0;       // of a head's width, the part with positions
  std::int64_t value = 0;        // width of a head's values; keys have head_dim

  friend bool operator==(const Latent&, const Latent&) = default;
};

// An indexer chooses the tokens that a query attends to: narrow heads of its own score all before
// it.
struct Indexer {
  std::int64_t heads = 0;
  std::int64_t width = 0;   // of a head; the keys have one
  std::int64_t chosen = 0;  // tokens

  friend bool operator==(const Indexer&, const Indexer&) = default;
};

struct Attention {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  bool qkv_bias = false, output_bias = false;
  bool fused_qkv = false;  // one matrix instead of three: fewer, larger tensors
  bool sinks = false;      // one learned logit per head
  enum class QkNorm : std::uint8_t { none, per_head, full_width } qk_norm = QkNorm::none;
  std::int64_t sliding_window = 0;   // tokens a query sees; 0: all before it
  std::int64_t full_every = 0;       // with a window: each such layer sees all; 0: none does
  bool full_first = false;           // the first one of them is the first layer
  std::int64_t relative = 0;         // rows of a table of distances that scores come from as well
  bool chunked = false;              // the window starts anew at multiples of its width
  std::optional<Latent> latent{};    // then every head has keys and values of its own
  std::optional<Indexer> indexer{};  // beside latent attention
  std::int64_t rotary = 0;           // numbers of a head that have positions; 0: all
  bool gated = false;  // half of what makes queries weighs the result, number by number

  friend bool operator==(const Attention&, const Attention&) = default;
};

// Numbers of a token in queries, keys, values and what comes out of attention.
struct AttentionWidths {
  std::int64_t queries = 0, keys = 0, values = 0, result = 0;
};
AttentionWidths widths_of(const Attention& attention);

// This is what a cache of keys and values holds of a token in each layer.
struct CachedToken {
  std::int64_t numbers = 0;
  std::int64_t heads = 1;     // that can be divided among GPUs; a latent vector cannot
  std::int64_t products = 0;  // multiplications of a new token with a cached one, of all heads
};
CachedToken cached_token_of(const Attention& attention);

struct FeedForward {
  std::int64_t width = 0;
  bool gated = true;  // gate, up, down; else up, down
  bool bias = false, fused_gate_up = false;

  friend bool operator==(const FeedForward&, const FeedForward&) = default;
};

struct Experts {
  std::int64_t count = 0, per_token = 0, width = 0;
  std::int64_t shared_width = 0;  // all shared experts together, held in one gated unit; 0: none
  bool shared_gate = false;       // a vector that weighs the shared expert
  std::int64_t first_dense = 0;   // layers at the bottom without experts
  std::int64_t every = 1;         // among all layers, each such one has experts
  // A token's experts come out of so many of the router's equal groups of experts.
  std::int64_t groups = 1, groups_chosen = 1;
  bool bias = false;            // in the router and in the experts
  bool selection_bias = false;  // a buffer of the router, balanced by rule and not by gradient
  bool fused = false;           // one three-dimensional tensor per matrix kind, not one per expert
  bool shared_fused = false;    // the shared expert has gate and up in one matrix
  bool masked = false;  // the public loop takes each expert's rows out of all copies by a mask
  bool gated = true;    // gate, up, down; else up, down; the shared expert likewise

  friend bool operator==(const Experts&, const Experts&) = default;
};

enum class MixerKind : std::uint8_t { convolution, mamba, mamba2, delta };
inline constexpr std::array<std::string_view, 4> mixer_names{"short convolution", "Mamba",
                                                             "Mamba-2", "gated delta net"};

// A mixer stands in place of attention in some layers: tokens hear of those before them through a
// convolution over the last few, and through a state of fixed size.
struct Mixer {
  MixerKind kind = MixerKind::convolution;
  std::int64_t heads = 1;
  std::int64_t width = 0;       // channels of a head
  std::int64_t groups = 1;      // heads of one group share what is put into the state and read out
  std::int64_t state = 0;       // numbers that a channel remembers; in a delta net a key's width
  std::int64_t taps = 0;        // tokens that the convolution sees
  std::int64_t chunk = 0;       // tokens that kernels multiply with each other at once
  std::int64_t step_width = 0;  // Mamba: of the narrow vector that time steps are made from
  bool bias = false;            // in the matrices at both ends
  bool taps_bias = false;       // in the convolution
  bool normed = true;           // Mamba-2: its result, before what goes out
  bool split = false;           // what comes in, weighs and gates has a matrix each
  bool wide_state = false;      // engines keep the state in 32 bits, not in 16

  std::int64_t channels() const { return heads * width; }
  // Returns how many numbers go through the convolution: the channels, and what all heads of a
  // group share.
  std::int64_t convolved() const;

  friend bool operator==(const Mixer&, const Mixer&) = default;
};
inline std::string_view mixer_name(const Mixer& mixer) {
  return mixer_names[static_cast<std::size_t>(mixer.kind)];
}

enum class Positions : std::uint8_t { rotary, learned, alibi, none };
inline constexpr auto positions_names = words_through<Positions::none>();

// This says where a layer has its norms: before attention and feed-forward, behind them, at both
// ends, or one before the layer, whose result both read.
enum class Norms : std::uint8_t { before, behind, both, once };

// A kind says what a layer is made of: how its tokens hear of each other, and what follows.
struct LayerKind {
  enum class Mixes : std::uint8_t {
    attention,
    mixer,
    both,  // beside each other: both read what one norm makes
    nothing
  } mixes = Mixes::attention;
  enum class Follows : std::uint8_t {
    feed_forward,
    experts,
    nothing
  } follows = Follows::feed_forward;

  bool attends() const { return mixes == Mixes::attention || mixes == Mixes::both; }
  bool has_mixer() const { return mixes == Mixes::mixer || mixes == Mixes::both; }

  auto operator<=>(const LayerKind&) const = default;
};

// A part is what a pipeline stage has of a whole model.
struct ModelPart {
  std::vector<std::int64_t> places{};  // of its layers in the whole model; empty: where they stand
  bool embeds = true;                  // has the table that tokens are looked up in
  bool predicts = true;                // has the last norm, the head and the loss

  friend bool operator==(const ModelPart&, const ModelPart&) = default;
};

// A head stands behind the last layer. One of labels makes numbers in place of words: of a text (a
// reward, classes), or of each token.
struct ModelHead {
  enum class Makes : std::uint8_t { words, labels, labels_of_tokens, nothing } makes = Makes::words;
  std::int64_t labels = 1;
  bool bias = false;          // of labels
  bool beside_words = false;  // the head over the vocabulary stays, and runs as well

  bool has_words() const { return makes == Makes::words || beside_words; }
  bool has_labels() const { return makes == Makes::labels || makes == Makes::labels_of_tokens; }

  friend bool operator==(const ModelHead&, const ModelHead&) = default;
};

// An encoder sees a text as a whole: its tokens attend to those behind them as well. Its heads read
// what one more matrix makes, with an activation, and a norm where words are asked for.
struct Encoder {
  std::int64_t segments = 0;     // rows of the table that says which of two texts a token is of
  bool final_norm = false;       // behind the last layer; else each layer ends with one
  bool pooler = false;           // without a head that matrix stands behind the first token
  bool dense_bias = true;        // that matrix has a bias
  bool norms_all = false;        // its norm stands before heads of labels as well,
  bool dense_of_tokens = false;  // and so does it before labels of tokens
  bool drops = false;            // dropout behind the embedding, attention and feed-forward

  friend bool operator==(const Encoder&, const Encoder&) = default;
};

// A tower sees images: it cuts them into patches, runs these through layers of its own, and a
// projector makes tokens of them, which go into the rows of the language model.
struct Tower {
  std::int64_t layers = 0, hidden = 0, heads = 0, head_dim = 0, width = 0;
  bool fused_qkv = false;   // one matrix instead of three
  bool gated = false;       // the feed-forward block
  bool bias = true;         // of all matrices of a layer
  bool norm_bias = true;    // norms are PyTorch's own; else they are of the kind of language models
  bool rotary = false;      // else positions are learned
  bool scales = false;      // the result of each block is weighed, number by number
  std::int64_t patch = 14;  // pixels on a side
  std::int64_t depth = 3;   // numbers of a pixel: colours, and frames
  bool patch_bias = false;  // of the matrix that patches are multiplied with
  std::int64_t positions = 0;                  // rows of the table of places
  std::int64_t classes = 0;                    // tokens of no patch in front of those of a tile
  bool norm_first = false, norm_last = false;  // before the layers, and behind them
  std::int64_t window = 0;      // patches that attend to each other; 0: all of a tile
  std::int64_t full_every = 0;  // with a window: each such layer attends to all
  // Pixels on a side of a tile; 0: an image keeps its size, and is one.
  std::int64_t tile = 0;
  std::int64_t most_tiles = 1;  // that a large image is cut into, beside the whole at a small scale
  bool always_cut = false;      // into so many, however small it is
  double least_pixels = 0, most_pixels = 0;  // of an image that keeps its size
  std::int64_t merged = 1;                   // patches that make one token
  struct Projection {                        // in = 0: a norm
    std::string name;
    std::int64_t in = 0, out = 0;
    bool bias = true;
    std::int64_t copies = 1;  // that stand beside each other

    friend bool operator==(const Projection&, const Projection&) = default;
  };
  std::vector<Projection> projector{};

  friend bool operator==(const Tower&, const Tower&) = default;
};

// What a tower makes of an image of so many pixels, as high as it is wide.
struct Picture {
  double tiles = 1;
  double patches = 0;  // of a tile, with tokens of no patch
  double tokens = 0;   // of the image in a row
};
Picture picture_of(const Tower& tower, double pixels);

struct Model {
  std::string name;
  std::string architecture;  // as config.json spells it
  std::string stored_as{};   // the method of quantization_config; 16 bits are counted all the same
  std::int64_t layers = 0, hidden = 0, vocabulary = 0;
  std::int64_t looked_up = 0;  // rows of the table, where a rank has more of it than of the head
  std::int64_t longest_sequence = 0;
  Positions positions = Positions::rotary;  // learned: a row for each of longest_sequence ...
  std::int64_t spare_positions = 0;         // ... and so many that no token has
  bool tied_embeddings = false, norm_bias = false;
  bool norm_weights = true;      // else norms only bring what comes to one scale
  bool norms_embedding = false;  // a norm behind the table
  bool head_bias = false;
  Norms norms = Norms::before;
  bool caps_logits = false;  // a tanh bounds them
  bool scales = false;       // the result of each block is weighed, number by number
  ModelHead head{};          // what a job asks for
  std::optional<Encoder> encoder{};
  std::optional<Tower> tower{};  // where images are looked at
  Attention attention;
  std::optional<Mixer> mixer;  // of the layers that do not attend
  FeedForward feed_forward;    // of the dense layers
  std::optional<Experts> experts;
  std::vector<LayerKind> kinds{};  // of the whole model's layers; empty: all attend
  ModelPart part;

  std::int64_t rows_of_table() const { return looked_up > 0 ? looked_up : vocabulary; }
  std::int64_t rows_of_positions() const { return longest_sequence + spare_positions; }

  friend bool operator==(const Model&, const Model&) = default;
};

// A framework makes these tensors and modules of a Part (parts.hpp).
struct Tensor {
  std::string name;  // "self_attn.q_proj.weight"
  std::int64_t elements = 0;
  TensorClass kind = TensorClass::dense;
};

// A module that a framework calls and hooks: its own tensors, not those of its children.
struct Module {
  std::string name;  // "self_attn.q_proj"
  std::vector<Tensor> tensors;
};

// Returns the layers of the model, its tower's among them.
inline std::int64_t all_layers(const Model& model) {
  return model.layers + (model.tower ? model.tower->layers : 0);
}
// Returns where a layer stands in the whole model.
std::int64_t whole_layer(const Model& model, std::int64_t layer);
LayerKind kind_of(const Model& model, std::int64_t layer);
// Layers of one kind are made of the same parts: the first of each kind, and how many there are.
struct AlikeLayers {
  std::int64_t first = 0, count = 0;
};
std::vector<AlikeLayers> alike_layers(const Model& model);
std::int64_t attention_layers(const Model& model);
std::int64_t mixer_layers(const Model& model);
std::int64_t feed_forward_layers(const Model& model);  // those with experts are none of them
bool has_experts(const Model& model, std::int64_t layer);
std::int64_t expert_layers(const Model& model);
// Tokens that a query of this layer sees at most; 0: all before it.
std::int64_t window_of(const Model& model, std::int64_t layer);

// Returns a layer's modules in calling order; containers and activations are modules without
// tensors. Experts are listed one by one as they are stored: count x (container, matrices,
// activation), or fused tensors. Dropout, which training of this kind switches off, is left out.
std::vector<Module> layer_modules(const Model& model, std::int64_t layer);
// Returns what is called once per pass: the model itself, embedding, positions, final norm, head.
std::vector<Module> outer_modules(const Model& model);

struct ParameterCount {
  std::array<std::int64_t, tensor_class_names.size()> elements{};
  std::int64_t tensors = 0;
  std::int64_t buffers = 0;  // elements saved with the model that no gradient reaches

  std::int64_t of(TensorClass kind) const { return elements[static_cast<std::size_t>(kind)]; }
  std::int64_t total() const;  // parameters: without buffers
};
ParameterCount count_parameters(const Model& model);
// Returns the parameters that one token meets: top-k of the experts, everything else.
std::int64_t active_parameters(const Model& model);

}  // namespace stepsim
