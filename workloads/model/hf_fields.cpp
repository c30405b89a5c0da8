#include "workloads/model/hf_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/letters.hpp"

namespace stepsim {

namespace {

std::int64_t given_or(const Table& table, std::string_view key, std::int64_t usual,
                      std::int64_t most) {
  return usual > 0 ? table.integer_or(key, usual, 1, most) : table.integer(key, 1, most);
}

}  // namespace

void read_heads(const Table& table, const HeadKeys& keys, Model& model, const UsualHeads& usual) {
  Attention& a = model.attention;
  a.heads = given_or(table, keys.heads, usual.heads, hf_limits.heads);
  const std::int64_t shared = usual.kv_heads > 0 ? usual.kv_heads : a.heads;
  a.kv_heads =
      keys.kv_heads.empty() ? a.heads : table.integer_or(keys.kv_heads, shared, 1, hf_limits.heads);
  const std::int64_t even = usual.width > 0 ? usual.width : model.hidden / a.heads;
  a.head_dim = table.integer_or("head_dim", even, 1, hf_limits.heads);
  if (!table.sound()) return;
  if (a.heads % a.kv_heads != 0)
    table.problem(keys.kv_heads, fmt::format("{} heads cannot share {} key-value heads evenly",
                                             a.heads, a.kv_heads));
  if (!table.has("head_dim") && usual.width == 0 && model.hidden % a.heads != 0)
    table.problem(keys.heads, fmt::format("{} heads do not divide {} {}; give head_dim", a.heads,
                                          keys.hidden, model.hidden));
}

Model read_decoder(const Table& table, const DecoderKeys& keys) {
  const auto number = [&](std::string_view key, std::int64_t usual, std::int64_t most) {
    return given_or(table, key, usual, most);
  };
  Model model;
  model.layers = number(keys.depth, keys.layers, hf_limits.layers);
  model.hidden = number("hidden_size", keys.hidden, hf_limits.width);
  model.vocabulary = number(keys.words, keys.vocabulary, hf_limits.vocabulary);
  model.longest_sequence = number(keys.reach, keys.positions, hf_limits.tokens);
  model.tied_embeddings = table.flag_or("tie_word_embeddings", keys.tied);
  model.feed_forward.width = number(keys.width, keys.feed_forward, hf_limits.width);
  read_heads(table, {"num_attention_heads", "num_key_value_heads", "hidden_size"}, model,
             keys.heads);
  return model;
}

void read_rotary(const Table& table, std::string_view key, double usual, Model& model) {
  Attention& a = model.attention;
  const double share = table.number_or(key, usual, 0, 1);
  a.rotary = static_cast<std::int64_t>(share * static_cast<double>(a.head_dim));
  if (a.rotary == a.head_dim) a.rotary = 0;
}

void read_latent(const Table& table, Model& model, std::int64_t value_width) {
  Attention& a = model.attention;
  Latent latent;
  latent.width = table.integer("kv_lora_rank", 1, hf_limits.width);
  latent.query_width = table.integer_or("q_lora_rank", 0, 0, hf_limits.width);
  latent.rotary = table.integer("qk_rope_head_dim", 1, hf_limits.heads);
  latent.value = given_or(table, "v_head_dim", value_width, hf_limits.heads);
  a.head_dim = table.integer("qk_nope_head_dim", 0, hf_limits.heads) + latent.rotary;
  a.kv_heads = a.heads;
  a.latent = latent;
}

bool keeps_wide_state(const Table& root, std::string_view key, bool usual) {
  return root.text_or(key, usual ? "float32" : "auto") == "float32";
}

Experts read_experts(const Table& table, const ExpertKeys& keys) {
  Experts experts;
  experts.count = table.integer(keys.count, 1, hf_limits.experts);
  experts.per_token = table.integer(keys.per_token, 1, hf_limits.experts);
  experts.width = table.integer(keys.width, 1, hf_limits.width);
  experts.groups = table.integer_or("n_group", 1, 1, hf_limits.experts);
  experts.groups_chosen = table.integer_or("topk_group", 1, 1, experts.groups);
  if (experts.count % experts.groups != 0)
    table.problem("n_group", fmt::format("{} experts ({}) do not divide into {} groups",
                                         experts.count, keys.count, experts.groups));
  if (!keys.shared_count.empty())
    experts.shared_width =
        experts.width * table.integer_or(keys.shared_count, 0, 0, hf_limits.shared);
  if (!keys.shared_width.empty() && table.has(keys.shared_width))
    experts.shared_width = table.integer(keys.shared_width, 0, hf_limits.width);
  if (table.sound() && experts.per_token > experts.count)
    table.problem(keys.per_token, fmt::format("a token cannot go to {} of {} experts ({})",
                                              experts.per_token, experts.count, keys.count));
  return experts;
}

void set_full_layers(const Table& table, std::string_view key, Model& model,
                     const std::vector<bool>& full) {
  if (!table.sound()) return;
  if (full.size() != static_cast<std::size_t>(model.layers)) {
    table.problem(key, fmt::format("expected {} entries, one per layer, found {}", model.layers,
                                   full.size()));
    return;
  }
  if (std::find(full.begin(), full.end(), false) == full.end()) {
    model.attention.sliding_window = 0;
    model.attention.full_every = 0;
    return;
  }
  const auto first = std::find(full.begin(), full.end(), true);
  const auto period = first == full.end() ? 0 : first - full.begin() + 1;
  model.attention.full_every = period;
  for (std::size_t i = 0; i < full.size() && period > 0; ++i)
    if (full[i] != ((i + 1) % static_cast<std::size_t>(period) == 0)) {
      table.problem(key, fmt::format("layers that see everything must come at equal distances: "
                                     "the first is layer {}, but layer {} {}",
                                     period, i + 1, full[i] ? "is one too" : "is none"));
      return;
    }
}

void read_layer_types(const Table& table, Model& model) {
  if (!table.has("layer_types")) return;
  const std::vector<std::string> known{"full_attention", "sliding_attention", "chunked_attention"};
  std::vector<bool> full;
  for (const std::string& type : table.texts("layer_types")) {
    if (std::find(known.begin(), known.end(), type) == known.end()) {
      table.problem("layer_types", expected_one_of(known, type));
      return;
    }
    full.push_back(type == known.front());
  }
  set_full_layers(table, "layer_types", model, full);
}

void set_kinds(Model& model, const std::vector<LayerKind::Mixes>& mixes) {
  std::vector<LayerKind> kinds;
  for (std::size_t i = 0; i < mixes.size(); ++i)
    kinds.push_back({.mixes = mixes[i],
                     .follows = has_experts(model, static_cast<std::int64_t>(i))
                                    ? LayerKind::Follows::experts
                                    : LayerKind::Follows::feed_forward});
  model.kinds = std::move(kinds);
}

void set_kinds(const Table& table, std::string_view key, Model& model,
               const std::vector<MixesWord>& words) {
  std::vector<std::string> known;
  known.reserve(words.size());
  for (const MixesWord& each : words) known.emplace_back(each.word);
  std::vector<LayerKind::Mixes> mixes;
  for (const std::string& type : table.texts(key)) {
    const auto found = std::find_if(words.begin(), words.end(),
                                    [&](const MixesWord& each) { return each.word == type; });
    if (found == words.end()) {
      table.problem(key, expected_one_of(known, type));
      return;
    }
    mixes.push_back(found->mixes);
  }
  if (!table.sound()) return;
  if (mixes.size() != static_cast<std::size_t>(model.layers)) {
    table.problem(key, fmt::format("expected {} entries, one per layer, found {}", model.layers,
                                   mixes.size()));
    return;
  }
  set_kinds(model, mixes);
}

void set_bias(Model& model, bool everywhere) {
  model.attention.qkv_bias = everywhere;
  model.attention.output_bias = everywhere;
}

void read_window(const Table& root, Model& model) {
  model.attention.sliding_window = root.integer_or("sliding_window", 0, 0, hf_limits.tokens);
  read_layer_types(root, model);
}

void read_qwen_window(const Table& root, Model& model) {
  const bool on = root.flag_or("use_sliding_window", false);
  const std::int64_t window = root.integer_or("sliding_window", 0, 0, hf_limits.tokens);
  const std::int64_t untouched =
      root.integer_or("max_window_layers", model.layers, 0, hf_limits.layers);
  if (!on || untouched >= model.layers) return;
  model.attention.sliding_window = window;
  if (root.has("layer_types"))
    read_layer_types(root, model);
  else if (untouched > 0)
    root.problem("max_window_layers", "a window in the upper layers only is not supported");
}

std::vector<std::int64_t> integers(const Table& table, std::string_view key) {
  std::vector<std::int64_t> list;
  if (!table.has(key)) return list;
  for (const std::string& word : table.texts(key)) {
    const auto number = number_from<std::int64_t>(word);
    if (!number) {
      table.problem(key, fmt::format("expected whole numbers, found \"{}\"", word));
      return {};
    }
    list.push_back(*number);
  }
  return list;
}

}  // namespace stepsim
