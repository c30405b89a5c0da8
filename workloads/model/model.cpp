#include "workloads/model/model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "workloads/model/parts.hpp"

namespace stepsim {
namespace {

using Modules = std::vector<Module>;

Module module_of(const Part& part, const std::string& name) {
  Module module{name, {}};
  if (part.tensors() == 0) return module;
  const bool alone = part.role == Role::attend;  // sinks: a tensor of the container itself
  if (!part.borrowed)
    module.tensors.push_back({name + (alone ? ".sinks" : ".weight"), part.weights(), part.kind});
  if (part.bias) module.tensors.push_back({name + ".bias", part.out, part.kind});
  return module;
}

// "mlp.experts.gate_proj" of one of them.
std::string name_of_expert(const std::string& name, std::int64_t expert) {
  const std::size_t end = name.find("experts") + std::string_view("experts").size();
  return name.substr(0, end) + "." + std::to_string(expert) + name.substr(end);
}

// One module holds the tensors of all experts, and their biases behind them.
Module stacked_module(std::span<const Part> parts) {
  const std::string& first = parts.front().name;
  Module module{first.substr(0, first.rfind('.')), {}};
  for (const Part& part : parts)
    module.tensors.push_back({part.name, part.copies * part.weights(), part.kind});
  for (const Part& part : parts)
    if (part.bias)
      module.tensors.push_back({part.name + "_bias", part.copies * part.out, part.kind});
  return module;
}

// Expert by expert, each with all of its parts.
Modules modules_of(const std::vector<Part>& parts) {
  Modules list;
  for (std::size_t first = 0, end = 0; first < parts.size(); first = end) {
    const bool expert = parts[first].kind == TensorClass::expert;
    for (end = first + 1; expert && end < parts.size() && parts[end].kind == TensorClass::expert;
         ++end)
      ;
    const std::span<const Part> run(&parts[first], end - first);
    if (parts[first].role == Role::mixer_constant)  // a tensor of the block itself
      list.back().tensors.push_back({parts[first].name, parts[first].weights(), parts[first].kind});
    else if (parts[first].stacked)
      list.push_back(stacked_module(run));
    else
      for (std::int64_t copy = 0; copy < parts[first].copies; ++copy)
        for (const Part& part : run)
          list.push_back(module_of(part, expert ? name_of_expert(part.name, copy) : part.name));
  }
  return list;
}

void add_to(ParameterCount& count, const std::vector<Part>& parts, std::int64_t times) {
  for (const Part& part : parts) {
    count.elements[static_cast<std::size_t>(part.kind)] += times * part.elements();
    count.tensors += times * part.tensors();
  }
}

std::int64_t layers_where(const Model& model, const auto& wanted) {
  std::int64_t count = 0;
  for (const AlikeLayers& alike : alike_layers(model))
    if (wanted(kind_of(model, alike.first))) count += alike.count;
  return count;
}

}  // namespace

std::int64_t whole_layer(const Model& model, std::int64_t layer) {
  const auto& places = model.part.places;
  return places.empty() ? layer : places[static_cast<std::size_t>(layer)];
}

AttentionWidths widths_of(const Attention& a) {
  const std::int64_t q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  if (!a.latent) return {q, kv, kv, q};
  const std::int64_t v = a.heads * a.latent->value;
  return {q, q, v, v};
}

// Latent vectors are attended to as they are: what makes keys and values out of them is multiplied
// with queries and results instead. One key and one value are then as wide as the vector.
CachedToken cached_token_of(const Attention& a) {
  if (!a.latent) return {2 * a.kv_heads * a.head_dim, a.kv_heads, 2 * a.heads * a.head_dim};
  const std::int64_t key = a.latent->width + a.latent->rotary;
  return {key, 1, a.heads * (key + a.latent->width)};
}

std::int64_t Mixer::convolved() const {
  const bool shares = kind == MixerKind::mamba2 || kind == MixerKind::delta;
  return channels() + (shares ? 2 * groups * state : 0);
}

LayerKind kind_of(const Model& model, std::int64_t layer) {
  const std::int64_t place = whole_layer(model, layer);
  if (!model.kinds.empty()) return model.kinds[static_cast<std::size_t>(place)];
  const bool sparse = model.experts && place >= model.experts->first_dense &&
                      (place + 1) % model.experts->every == 0;
  return {.mixes = LayerKind::Mixes::attention,
          .follows = sparse ? LayerKind::Follows::experts : LayerKind::Follows::feed_forward};
}

std::vector<AlikeLayers> alike_layers(const Model& model) {
  std::vector<AlikeLayers> list;
  std::map<LayerKind, std::size_t> places;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const auto [place, added] = places.try_emplace(kind_of(model, layer), list.size());
    if (added) list.push_back({.first = layer, .count = 0});
    ++list[place->second].count;
  }
  return list;
}

std::int64_t attention_layers(const Model& model) {
  return layers_where(model, [](const LayerKind& kind) { return kind.attends(); });
}

std::int64_t mixer_layers(const Model& model) {
  return layers_where(model, [](const LayerKind& kind) { return kind.has_mixer(); });
}

std::int64_t feed_forward_layers(const Model& model) {
  return layers_where(model, [](const LayerKind& kind) {
    return kind.follows == LayerKind::Follows::feed_forward;
  });
}

std::int64_t expert_layers(const Model& model) {
  return layers_where(
      model, [](const LayerKind& kind) { return kind.follows == LayerKind::Follows::experts; });
}

bool has_experts(const Model& model, std::int64_t layer) {
  return kind_of(model, layer).follows == LayerKind::Follows::experts;
}

std::int64_t window_of(const Model& model, std::int64_t layer) {
  const Attention& a = model.attention;
  const std::int64_t place = whole_layer(model, layer) + (a.full_first ? 0 : 1);
  const bool full = a.full_every > 0 && place % a.full_every == 0;
  return full ? 0 : a.sliding_window;
}

std::vector<Module> layer_modules(const Model& model, std::int64_t layer) {
  return modules_of(layer_parts(model, layer));
}

std::vector<Module> outer_modules(const Model& model) {
  return modules_of(outer_parts(model));
}

std::int64_t ParameterCount::total() const {
  return std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
}

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  add_to(count, outer_parts(model), 1);
  for (const AlikeLayers& alike : alike_layers(model))
    add_to(count, layer_parts(model, alike.first), alike.count);
  if (const auto& tower = model.tower) {
    add_to(count, parts_before(*tower), 1);
    add_to(count, layer_parts(layers_of(*tower), 0), tower->layers);
    add_to(count, parts_behind(*tower), 1);
  }
  if (model.experts && model.experts->selection_bias)
    count.buffers = expert_layers(model) * model.experts->count;
  return count;
}

// An image keeps its shape: a side is a whole number of tokens, and so is that of a tile.
Picture picture_of(const Tower& tower, double pixels) {
  const double patches_of_token = std::sqrt(static_cast<double>(tower.merged));
  const double unit = static_cast<double>(tower.patch) * patches_of_token;
  Picture picture;
  if (tower.tile > 0) {
    const double side =
        std::floor(static_cast<double>(tower.tile) / static_cast<double>(tower.patch));
    const double most = std::floor(std::sqrt(static_cast<double>(tower.most_tiles)));
    double cuts = tower.always_cut ? most : 1;
    // As many as half of them would be filled of (InternVL's find_closest_aspect_ratio).
    const double tile = static_cast<double>(tower.tile * tower.tile);
    while (!tower.always_cut && cuts < most && pixels > 0.5 * tile * (cuts + 1) * (cuts + 1))
      ++cuts;
    picture.tiles = cuts > 1 ? cuts * cuts + 1 : 1;
    picture.patches = side * side + static_cast<double>(tower.classes);
    picture.tokens = picture.tiles * std::floor(side * side / static_cast<double>(tower.merged));
    return picture;
  }
  double side = std::max(1.0, std::round(std::sqrt(pixels) / unit));
  if (tower.most_pixels > 0 && side * side * unit * unit > tower.most_pixels)
    side = std::floor(std::sqrt(tower.most_pixels) / unit);
  if (side * side * unit * unit < tower.least_pixels)
    side = std::ceil(std::sqrt(tower.least_pixels) / unit);
  picture.tokens = side * side;
  picture.patches =
      picture.tokens * static_cast<double>(tower.merged) + static_cast<double>(tower.classes);
  return picture;
}

std::int64_t active_parameters(const Model& model) {
  const ParameterCount count = count_parameters(model);
  if (!model.experts) return count.total();
  const Experts& e = *model.experts;
  return count.total() - count.of(TensorClass::expert) / e.count * (e.count - e.per_token);
}

}  // namespace stepsim
