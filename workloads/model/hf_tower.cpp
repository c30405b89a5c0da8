// Towers for images: the block vision_config of a config.json, and what stands beside it.
#include <fmt/format.h>

#include <cmath>

#include "workloads/model/hf_families.hpp"
#include "workloads/model/hf_fields.hpp"

namespace stepsim {
namespace {

using Projections = std::vector<Tower::Projection>;

// Layers, widths and heads, by the names that a family has for them.
struct TowerKeys {
  std::string_view layers = "num_hidden_layers", hidden = "hidden_size",
                   width = "intermediate_size", heads = "num_attention_heads";
};
Tower read_widths(const Table& table, const TowerKeys& keys) {
  Tower tower;
  tower.layers = table.integer(keys.layers, 1, hf_limits.layers);
  tower.hidden = table.integer(keys.hidden, 1, hf_limits.width);
  if (!keys.width.empty()) tower.width = table.integer(keys.width, 1, hf_limits.width);
  tower.heads = table.integer(keys.heads, 1, hf_limits.heads);
  if (table.sound() && tower.hidden % tower.heads != 0)
    table.problem(keys.heads, fmt::format("{} heads do not divide {}", tower.heads, tower.hidden));
  tower.head_dim = tower.hidden / tower.heads;
  tower.patch = table.integer_or("patch_size", 14, 1, 1000);
  return tower;
}

// Patches in squares of four or so become one token of twice a matrix.
Projections merger(const std::string& name, std::int64_t hidden, std::int64_t merged,
                   std::int64_t out, bool norm_bias) {
  const std::int64_t wide = hidden * merged;
  return {{name + ".ln_q", 0, hidden, norm_bias},
          {name + ".mlp.0", wide, wide},
          {name + ".mlp.2", wide, out}};
}

std::int64_t square(std::int64_t number) {
  return number * number;
}

// Images keep their size, between bounds of the processor (preprocessor_config.json).
void keep_size(Tower& tower, std::int64_t merge) {
  constexpr double least_tokens = 4, most_tokens = 16384;
  const double token = static_cast<double>(square(tower.patch * merge));
  tower.merged = square(merge);
  tower.least_pixels = least_tokens * token;
  tower.most_pixels = most_tokens * token;
}

Tower read_qwen2_vl(const Table& table) {
  Tower tower = read_widths(
      table, {.layers = "depth", .hidden = "embed_dim", .width = "", .heads = "num_heads"});
  tower.width = table.integer_or("mlp_ratio", 4, 1, 100) * tower.hidden;
  tower.depth = 3 * table.integer_or("temporal_patch_size", 2, 1, 100);
  tower.fused_qkv = tower.rotary = true;
  keep_size(tower, table.integer_or("spatial_merge_size", 2, 1, 100));
  tower.projector = merger("merger", tower.hidden, tower.merged,
                           table.integer("hidden_size", 1, hf_limits.width), true);
  return tower;
}

// Norms and gates as in its language model, and windows in most layers.
Tower read_qwen2_5_vl(const Table& table) {
  Tower tower = read_widths(table, {.layers = "depth", .heads = "num_heads"});
  tower.depth = 3 * table.integer_or("temporal_patch_size", 2, 1, 100);
  tower.fused_qkv = tower.rotary = tower.gated = true;
  tower.norm_bias = false;
  keep_size(tower, table.integer_or("spatial_merge_size", 2, 1, 100));
  tower.window = square(table.integer_or("window_size", 112, tower.patch, 100'000) / tower.patch);
  const std::vector<std::int64_t> full = integers(table, "fullatt_block_indexes");
  if (full.empty())
    table.problem("fullatt_block_indexes", "expected the layers that attend to all of an image");
  else
    tower.full_every = full.front() + 1;
  for (std::size_t i = 0; i < full.size(); ++i)
    if (full[i] + 1 != static_cast<std::int64_t>(i + 1) * tower.full_every)
      table.problem("fullatt_block_indexes", "only each such layer, from the first of them on");
  tower.projector = merger("merger", tower.hidden, tower.merged,
                           table.integer("out_hidden_size", 1, hf_limits.width), false);
  return tower;
}

// A merger of what each of some layers gives stands beside the last one's.
Tower read_qwen3_vl(const Table& table) {
  Tower tower = read_widths(table, {.layers = "depth", .heads = "num_heads"});
  tower.depth = 3 * table.integer_or("temporal_patch_size", 2, 1, 100);
  tower.fused_qkv = tower.rotary = tower.patch_bias = true;
  tower.positions = table.integer_or("num_position_embeddings", 2304, 1, 1'000'000);
  keep_size(tower, table.integer_or("spatial_merge_size", 2, 1, 100));
  const std::int64_t out = table.integer("out_hidden_size", 1, hf_limits.width);
  tower.projector = merger("merger", tower.hidden, tower.merged, out, true);
  const auto deep = static_cast<std::int64_t>(integers(table, "deepstack_visual_indexes").size());
  if (deep == 0) return tower;
  Projections more = merger("deepstack", tower.hidden, tower.merged, out, true);
  more.front().out = tower.hidden * tower.merged;  // the norm stands behind the merge
  for (Tower::Projection& each : more) {
    each.copies = deep;
    tower.projector.push_back(each);
  }
  return tower;
}

// CLIP's layers see one tile, with a token of no patch; LLaVA leaves that one out again.
Tower read_clip(const Table& table, std::int64_t hidden) {
  Tower tower = read_widths(table, {});
  tower.tile = table.integer("image_size", 1, 100'000);
  tower.classes = 1;
  tower.positions = square(tower.tile / tower.patch) + 1;
  tower.norm_first = tower.norm_last = true;
  tower.projector = {{"multi_modal_projector.linear_1", tower.hidden, hidden},
                     {"multi_modal_projector.linear_2", hidden, hidden}};
  return tower;
}

Tower read_siglip(const Table& table) {
  Tower tower = read_widths(table, {});
  tower.tile = table.integer("image_size", 1, 100'000);
  tower.patch_bias = tower.norm_last = true;
  tower.positions = square(tower.tile / tower.patch);
  return tower;
}

// Patches are averaged until so many tokens are left.
Tower read_gemma3_tower(const Table& table, const Table& root, std::int64_t hidden) {
  Tower tower = read_siglip(table);
  tower.merged = tower.positions / root.integer("mm_tokens_per_image", 1, tower.positions);
  tower.projector = {{"multi_modal_projector.mm_soft_emb_norm", 0, tower.hidden, false},
                     {"multi_modal_projector.mm_input_projection", tower.hidden, hidden, false}};
  return tower;
}

// Squares of patches lie side by side in one token; an image is cut into four by four tiles.
Tower read_idefics3(const Table& table, const Table& root, std::int64_t hidden) {
  Tower tower = read_siglip(table);
  tower.merged = square(root.integer_or("scale_factor", 2, 1, 100));
  constexpr std::int64_t cuts = 4;  // preprocessor_config.json: the longest side is four tiles
  tower.most_tiles = square(cuts);
  tower.always_cut = true;
  tower.projector = {{"connector.modality_projection", tower.hidden * tower.merged, hidden, false}};
  return tower;
}

Tower read_intern_vit(const Table& table, const Table& root, std::int64_t hidden) {
  Tower tower = read_widths(table, {});
  tower.fused_qkv = true;
  if (!table.flag_or("qkv_bias", true))
    table.problem("qkv_bias", "a tower without biases is not modelled (InternViT-6B)");
  tower.scales = tower.patch_bias = true;
  tower.tile = table.integer("image_size", 1, 100'000);
  tower.classes = 1;
  tower.positions = square(tower.tile / tower.patch) + 1;
  const double ratio = root.number_or("downsample_ratio", 0.5, 0.01, 1);
  tower.merged = std::llround(1 / (ratio * ratio));
  tower.most_tiles = root.integer_or("max_dynamic_patch", 12, 1, 1000);
  const std::int64_t wide = tower.hidden * tower.merged;
  tower.projector = {
      {"mlp1.0", 0, wide, true}, {"mlp1.1", wide, hidden}, {"mlp1.3", hidden, hidden}};
  return tower;
}

}  // namespace

// Tells a tower by keys that it alone has, or by its type; one that is not known is left out.
std::optional<Tower> read_tower(const Table& root, std::int64_t hidden) {
  if (!root.is_mapping("vision_config")) return std::nullopt;
  const Table table = root.table("vision_config");
  const std::string type = table.text_or("model_type", "");
  std::optional<Tower> tower;
  if (table.has("fullatt_block_indexes"))
    tower = read_qwen2_5_vl(table);
  else if (table.has("deepstack_visual_indexes"))
    tower = read_qwen3_vl(table);
  else if (table.has("embed_dim") && table.has("depth"))
    tower = read_qwen2_vl(table);
  else if (type == "clip_vision_model")
    tower = read_clip(table, hidden);
  else if (type.starts_with("intern"))
    tower = read_intern_vit(table, root, hidden);
  else if (root.has("mm_tokens_per_image"))
    tower = read_gemma3_tower(table, root, hidden);
  else if (root.has("scale_factor"))
    tower = read_idefics3(table, root, hidden);
  for (const std::string& key : table.keys()) table.has(key);
  return tower;
}

}  // namespace stepsim
