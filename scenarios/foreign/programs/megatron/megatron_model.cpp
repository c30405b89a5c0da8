#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/foreign/programs/megatron/megatron.hpp"
#include "scenarios/foreign/table/named_models.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t widest = 1'000'000;
constexpr std::int64_t most_words = 100'000'000;

// These are entries of a config.json.
class Entries {
 public:
  template <class Value>
  void add(std::string_view key, const Value& value) {
    text_.push_back(fmt::format("{}: {}", key, value));
  }
  std::string take() const { return fmt::format("{{{}}}", fmt::join(text_, ", ")); }

 private:
  std::vector<std::string> text_;
};

std::int64_t needed(MappedSource& source, std::string_view key, std::int64_t most) {
  const std::int64_t value = source.whole(key, 0, 1, most);
  if (value == 0) source.problem(key, "is missing: it is a width of the model");
  return value;
}

// Returns the rows of the table: as many as the tokenizer has words, filled up so that ranks can
// share them.
std::int64_t vocabulary_of(MappedSource& source) {
  const std::int64_t step = source.whole("make-vocab-size-divisible-by", 128, 1, most_words);
  const std::int64_t tensor = source.whole("tensor-model-parallel-size", 1, 1, most_ranks);
  const auto filled = [&](std::int64_t words) {
    const std::int64_t piece = step * tensor;
    return (words + piece - 1) / piece * piece;
  };
  const std::string type = source.text("tokenizer-type"), named = source.text("tokenizer-model");
  if (const std::int64_t padded = source.whole("padded-vocab-size", 0, 1, most_words); padded > 0)
    return padded;
  if (const std::int64_t words = source.whole("vocab-size", 0, 1, most_words); words > 0)
    return filled(words);
  constexpr std::int64_t words_of_gpt2 = 50257;
  if (type.starts_with("GPT2")) return filled(words_of_gpt2);
  const Catalogue& data = source.question().data;
  if (const auto model =
          named.empty() ? std::nullopt : find_named_model(data, named, source.question().file)) {
    const std::int64_t words = load_model(data, model->name).vocabulary;
    source.result().assumptions.push_back(
        {"words of the tokenizer", fmt::format("{} of {}", words, model->name),
         fmt::format("tokenizer-model is {}", named), "--set vocab-size=N"});
    return filled(words);
  }
  const std::int64_t usual = type.starts_with("Llama2") ? 32000 : 128256;
  source.result().assumptions.push_back({"words of the tokenizer", fmt::format("{}", usual),
                                         "the file does not say; those of Llama",
                                         "--set vocab-size=N"});
  return filled(usual);
}

struct GivenShape {
  std::int64_t layers = 0, hidden = 0, heads = 0, groups = 0, width = 0, head_dim = 0,
               positions = 0, words = 0;
  bool gated = false, tied = true, bias = true;
};

GivenShape read_shape(MappedSource& source, std::int64_t longest) {
  GivenShape shape;
  shape.layers = needed(source, "num-layers", 1000);
  shape.hidden = needed(source, "hidden-size", widest);
  shape.heads = needed(source, "num-attention-heads", 10'000);
  shape.gated = source.on("swiglu");
  const bool grouped = source.on("group-query-attention") || source.says("num-query-groups");
  const std::int64_t groups = source.whole("num-query-groups", 1, 1, 10'000);
  shape.groups = grouped ? groups : shape.heads;
  const std::int64_t usual = shape.gated ? shape.hidden * 4 * 2 / 3 / 64 * 64 : 4 * shape.hidden;
  shape.width = source.whole("ffn-hidden-size", std::max<std::int64_t>(usual, 1), 1, widest);
  shape.head_dim = source.whole(
      "kv-channels",
      std::max<std::int64_t>(shape.hidden / std::max<std::int64_t>(shape.heads, 1), 1), 1, 10'000);
  shape.positions =
      std::max(longest, source.whole("max-position-embeddings",
                                     source.whole("seq-length", 1, 1, 1 << 24), 1, 1'000'000'000));
  shape.tied = !source.on("untie-embeddings-and-output-weights") &&
               source.on("share-embeddings-and-output-weights", true);
  shape.bias = !source.on("disable-bias-linear") && source.on("add-bias-linear", true);
  shape.words = vocabulary_of(source);
  return shape;
}

std::string title_of(const GivenShape& shape) {
  return fmt::format("{} layers of {}", shape.layers, shape.hidden);
}

// Writes a model with learned positions, LayerNorm and biases: GPT-2, which has no groups of
// queries.
std::string gpt_of(const GivenShape& shape) {
  Entries model;
  model.add("architectures", "[GPT2LMHeadModel]");
  model.add("name", title_of(shape));
  model.add("n_layer", shape.layers);
  model.add("n_embd", shape.hidden);
  model.add("n_head", shape.heads);
  model.add("n_inner", shape.width);
  model.add("n_positions", shape.positions);
  model.add("vocab_size", shape.words);
  model.add("tie_word_embeddings", shape.tied);
  return model.take();
}

void add_shape(const GivenShape& shape, Entries& model) {
  model.add("name", title_of(shape));
  model.add("num_hidden_layers", shape.layers);
  model.add("hidden_size", shape.hidden);
  model.add("num_attention_heads", shape.heads);
  model.add("num_key_value_heads", shape.groups);
  model.add("head_dim", shape.head_dim);
  model.add("max_position_embeddings", shape.positions);
  model.add("vocab_size", shape.words);
  model.add("tie_word_embeddings", shape.tied);
}

// Returns the layers at the bottom without experts: of "([0]*3+[1]*58)" three.
std::int64_t first_dense(MappedSource& source, std::int64_t layers) {
  const std::string said = source.text("moe-layer-freq", "1");
  if (said == "1") return 0;
  const std::size_t zeros = said.find("[0]*");
  if (zeros != std::string::npos && zeros < said.find("[1]"))
    return std::clamp<std::int64_t>(std::atoll(said.c_str() + zeros + 4), 0, layers);
  source.without("moe-layer-freq", fmt::format("{}: every layer has experts", said));
  return 0;
}

struct ExpertShape {
  std::int64_t count = 0, per_token = 0, width = 0, shared = 0, first_dense = 0;
};

ExpertShape read_expert_shape(MappedSource& source, const GivenShape& shape) {
  return {.count = source.whole("num-experts", 0, 1, 1024),
          .per_token = source.whole("moe-router-topk", 2, 1, 1024),
          .width = source.whole("moe-ffn-hidden-size", shape.width, 1, widest),
          .shared = source.whole("moe-shared-expert-intermediate-size", 0, 0, widest),
          .first_dense = first_dense(source, shape.layers)};
}

std::string latent_of(MappedSource& source, const GivenShape& shape, const ExpertShape& experts) {
  Entries model;
  model.add("architectures", "[DeepseekV3ForCausalLM]");
  add_shape(shape, model);
  model.add("intermediate_size", shape.width);
  model.add("kv_lora_rank", source.whole("kv-lora-rank", 32, 1, widest));
  if (const std::int64_t rank = source.whole("q-lora-rank", 0, 1, widest); rank > 0)
    model.add("q_lora_rank", rank);
  model.add("qk_nope_head_dim", source.whole("qk-head-dim", 128, 1, 10'000));
  model.add("qk_rope_head_dim", source.whole("qk-pos-emb-head-dim", 64, 1, 10'000));
  model.add("v_head_dim", source.whole("v-head-dim", 128, 1, 10'000));
  model.add("n_routed_experts", experts.count);
  model.add("num_experts_per_tok", experts.per_token);
  model.add("moe_intermediate_size", experts.width);
  model.add("n_shared_experts", experts.shared / std::max<std::int64_t>(experts.width, 1));
  model.add("first_k_dense_replace", experts.first_dense);
  return model.take();
}

// Writes a model with experts, with or without norms of queries and keys, biases of q, k and v, a
// shared expert.
std::string experts_of(const GivenShape& shape, const ExpertShape& experts, bool normed,
                       bool biased) {
  Entries model;
  const bool dense_below = experts.first_dense > 0, shared = experts.shared > 0;
  if (dense_below || shared) {
    model.add("architectures", "[Glm4MoeForCausalLM]");
    model.add("use_qk_norm", normed);
    model.add("attention_bias", biased);
    model.add("n_routed_experts", experts.count);
    model.add("n_shared_experts", experts.shared / std::max<std::int64_t>(experts.width, 1));
    model.add("first_k_dense_replace", experts.first_dense);
    model.add("moe_intermediate_size", experts.width);
    model.add("intermediate_size", shape.width);
  } else if (normed) {
    model.add("architectures", "[Qwen3MoeForCausalLM]");
    model.add("num_experts", experts.count);
    model.add("moe_intermediate_size", experts.width);
    model.add("intermediate_size", shape.width);
  } else {
    model.add("architectures", "[MixtralForCausalLM]");
    model.add("num_local_experts", experts.count);
    model.add("intermediate_size", experts.width);
  }
  add_shape(shape, model);
  model.add("num_experts_per_tok", experts.per_token);
  return model.take();
}

std::string dense_of(const GivenShape& shape, bool normed, bool biased) {
  Entries model;
  model.add("architectures", normed   ? "[Qwen3ForCausalLM]"
                             : biased ? "[Qwen2ForCausalLM]"
                                      : "[LlamaForCausalLM]");
  add_shape(shape, model);
  model.add("intermediate_size", shape.width);
  if (!normed && !biased && shape.bias) {
    model.add("attention_bias", true);
    model.add("mlp_bias", true);
  }
  return model.take();
}

}  // namespace

std::string described_model(MappedSource& source, std::int64_t longest) {
  const GivenShape shape = read_shape(source, longest);
  const std::string norm = source.text("normalization", "LayerNorm");
  const std::string kind = source.text("position-embedding-type", "learned_absolute");
  const bool rotary = kind == "rope" || source.on("use-rotary-position-embeddings");
  const bool normed = source.on("qk-layernorm"), biased = source.on("add-qkv-bias");
  const ExpertShape experts = read_expert_shape(source, shape);
  if (!rotary && !shape.gated && experts.count == 0) {
    if (shape.groups != shape.heads)
      source.without("num-query-groups", "as many heads for keys and values as for queries");
    return gpt_of(shape);
  }
  if (!shape.gated)
    source.without("ffn-hidden-size", "the feed-forward part is counted with a gate (swiglu)");
  if (norm != "RMSNorm")
    source.without("normalization", fmt::format("{}: RMSNorm is counted", norm));
  if (experts.count > 0 && source.on("multi-latent-attention"))
    return latent_of(source, shape, experts);
  if (source.on("multi-latent-attention"))
    source.without("multi-latent-attention", "attention of a dense model is counted as usual");
  return experts.count > 0 ? experts_of(shape, experts, normed, biased)
                           : dense_of(shape, normed, biased);
}

}  // namespace stepsim
