// Encoders of transformers: each layer attends to all of a text.
#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {
namespace {

// Puts that it is an encoder, whose dropout is on unless its file says otherwise.
void put_encoder(const Table& root, Model& model) {
  model.encoder = Encoder{.drops = root.number_or("hidden_dropout_prob", 0.1, 0, 1) > 0};
}

}  // namespace

void finish_bert(const Table& root, Model& model) {
  put_encoder(root, model);
  model.encoder->segments = root.integer_or("type_vocab_size", 2, 0, 1000);
  model.encoder->pooler = true;
  const std::string kind = root.text_or("position_embedding_type", "absolute");
  if (kind != "absolute")
    root.problem("position_embedding_type", "only absolute positions are modelled");
}

// Two rows of its positions belong to no token.
void finish_roberta(const Table& root, Model& model) {
  finish_bert(root, model);
  model.spare_positions = 2;
  model.longest_sequence -= model.spare_positions;
}

void finish_distilbert(const Table& root, Model& model) {
  model.layers = root.integer("n_layers", 1, hf_limits.layers);
  model.hidden = root.integer("dim", 1, hf_limits.width);
  model.vocabulary = root.integer("vocab_size", 1, hf_limits.vocabulary);
  model.longest_sequence = root.integer("max_position_embeddings", 1, hf_limits.tokens);
  model.feed_forward = {
      .width = root.integer("hidden_dim", 1, hf_limits.width), .gated = false, .bias = true};
  read_heads(root, {"n_heads", "", "dim"}, model);
  set_bias(model, true);
  model.positions = Positions::learned;
  model.tied_embeddings = root.flag_or("tie_weights_", true);
  model.norm_bias = model.norms_embedding = model.head_bias = true;
  model.encoder = Encoder{.drops = root.number_or("dropout", 0.1, 0, 1) > 0};
}

// Scores are sums of three: of what tokens say, and of how far they are from each other, by a table
// that queries and keys of all layers share.
void finish_deberta(const Table& root, Model& model) {
  put_encoder(root, model);
  model.encoder->segments = root.integer_or("type_vocab_size", 0, 0, 1000);
  if (root.flag_or("position_biased_input", true))
    root.problem("position_biased_input", "is modelled as false, as DeBERTa-v3 has it");
  if (!root.flag_or("share_att_key", false) || !root.flag_or("relative_attention", false))
    root.problem("share_att_key",
                 "distances are modelled as DeBERTa-v3 has them: relative_attention and "
                 "share_att_key true");
  if (root.integer_or("conv_kernel_size", 0, 0, 100) > 0)
    root.problem("conv_kernel_size", "a convolution beside the first layer is not modelled");
  root.has("pos_att_type");
  root.has("norm_rel_ebd");
  root.has("max_relative_positions");
  model.attention.relative = 2 * root.integer("position_buckets", 1, 1'000'000);
}

void finish_modernbert(const Table& root, Model& model) {
  model.attention.sliding_window = root.integer_or("local_attention", 128, 1, hf_limits.tokens);
  model.attention.full_every =
      root.integer_or("global_attn_every_n_layers", 3, 1, hf_limits.layers);
  model.attention.full_first = true;
  model.encoder = Encoder{.final_norm = true,
                          .dense_bias = root.flag_or("classifier_bias", false),
                          .norms_all = true,
                          .dense_of_tokens = true};
}

}  // namespace stepsim
