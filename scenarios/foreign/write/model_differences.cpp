#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "scenarios/foreign/write/exports.hpp"

namespace stepsim {
namespace {

std::string listed(const std::vector<std::string>& parts) {
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string heads_of(const Attention& a) {
  std::string text = fmt::format("{} heads of {}", a.heads, a.head_dim);
  if (a.latent)
    text += fmt::format(", out of a vector of {}, queries out of {}, values of {}", a.latent->width,
                        a.latent->query_width, a.latent->value);
  else
    text += fmt::format(", {} for keys and values", a.kv_heads);
  if (a.indexer) text += ", with an indexer";
  if (a.sinks) text += ", sinks";
  if (a.gated) text += ", a gate on the result";
  return text;
}

std::string window_text(const Attention& a) {
  if (a.sliding_window == 0) return "none";
  return fmt::format(
      "{} tokens{}", a.sliding_window,
      a.full_every > 1 ? fmt::format(" except in one layer of {}", a.full_every) : "");
}

std::string positions_of(const Model& model) {
  const Attention& a = model.attention;
  std::string text(positions_names[static_cast<std::size_t>(model.positions)]);
  const bool some = !a.latent && a.rotary > 0 && a.rotary < a.head_dim;
  return text + (some ? fmt::format(" for {} numbers of a head", a.rotary) : "");
}

std::string biases_of(const Model& model) {
  std::vector<std::string> where;
  if (model.attention.qkv_bias) where.emplace_back("queries, keys and values");
  if (model.attention.output_bias) where.emplace_back("attention's result");
  if (model.feed_forward.bias && feed_forward_layers(model) > 0) where.emplace_back("feed-forward");
  if (model.experts && model.experts->bias) where.emplace_back("experts");
  if (model.head_bias) where.emplace_back("head");
  return listed(where);
}

std::string norms_of(const Model& model) {
  std::string text = !model.norm_weights ? "without weights"
                     : model.norm_bias   ? "with biases"
                                         : "without biases";
  switch (model.norms) {
    case Norms::before:
      text += ", before attention and feed-forward";
      break;
    case Norms::behind:
      text += ", behind attention and feed-forward";
      break;
    case Norms::both:
      text += ", before and behind attention and feed-forward";
      break;
    case Norms::once:
      text += ", one for attention and feed-forward";
      break;
  }
  if (model.attention.qk_norm == Attention::QkNorm::per_head) text += ", on query and key heads";
  if (model.attention.qk_norm == Attention::QkNorm::full_width) text += ", on queries and keys";
  if (model.norms_embedding) text += ", on the embedding";
  return text;
}

std::string feed_forward_of(const Model& model) {
  if (feed_forward_layers(model) == 0) return "none";
  return fmt::format("{} wide, {}", model.feed_forward.width,
                     model.feed_forward.gated ? "with a gate" : "without a gate");
}

std::string experts_of_model(const Model& model) {
  if (!model.experts) return "none";
  const Experts& e = *model.experts;
  std::string text =
      fmt::format("{} in {} layers, {} for a token, {} wide, {}", e.count, expert_layers(model),
                  e.per_token, e.width, e.gated ? "with a gate" : "without a gate");
  if (e.shared_width > 0)
    text +=
        fmt::format(", shared {} wide{}", e.shared_width, e.shared_gate ? " behind a gate" : "");
  return text;
}

std::string mixers_of(const Model& model) {
  if (!model.mixer) return "none";
  return fmt::format("{} in {} layers", mixer_name(*model.mixer), mixer_layers(model));
}

// Returns the same facts of every model, in the same order.
std::vector<std::pair<std::string_view, std::string>> facts_of_model(const Model& model) {
  return {{"parameters", std::to_string(count_parameters(model).total())},
          {"layers", std::to_string(model.layers)},
          {"width", std::to_string(model.hidden)},
          {"vocabulary", std::to_string(model.vocabulary)},
          {"head", model.tied_embeddings ? "the embedding" : "its own"},
          {"positions", positions_of(model)},
          {"attention", heads_of(model.attention)},
          {"window", window_text(model.attention)},
          {"norms", norms_of(model)},
          {"biases", biases_of(model)},
          {"feed-forward", feed_forward_of(model)},
          {"experts", experts_of_model(model)},
          {"layers that do not attend", mixers_of(model)},
          {"logits", model.caps_logits ? "bounded" : "as they are"}};
}

}  // namespace

std::vector<std::string> model_differences(const Model& model, const Model& read) {
  const auto said = facts_of_model(model), other = facts_of_model(read);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < said.size(); ++i)
    if (said[i].second != other[i].second)
      lines.push_back(fmt::format("model, {}: {}; here it is {}", said[i].first, said[i].second,
                                  other[i].second));
  return lines;
}

}  // namespace stepsim
