#include "cli/models.hpp"

#include <fmt/format.h>

#include "sim/base/table.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {
namespace {

constexpr double bytes_in_bf16 = 2;
constexpr double gigabyte = 1e9;
constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string attention_text(const Model& model) {
  const Attention& a = model.attention;
  std::string text =
      fmt::format("attention: {} heads of {}, {} key-value heads", a.heads, a.head_dim, a.kv_heads);
  if (a.latent)
    text += fmt::format(" of {}, out of a vector of {} a token{}", a.latent->value, a.latent->width,
                        a.latent->query_width > 0
                            ? fmt::format(", queries out of one of {}", a.latent->query_width)
                            : "");
  if (a.indexer)
    text += fmt::format(", {} heads of {} that choose {} tokens", a.indexer->heads,
                        a.indexer->width, a.indexer->chosen);
  if (a.fused_qkv) text += ", q, k and v in one matrix";
  if (a.qkv_bias) text += a.output_bias ? ", biases" : ", biases in q, k and v";
  if (a.qk_norm == Attention::QkNorm::per_head) text += ", a norm on each query and key head";
  if (a.qk_norm == Attention::QkNorm::full_width) text += ", norms across all queries and keys";
  if (a.sinks) text += ", sinks";
  if (a.gated) text += ", a gate on the result";
  if (a.sliding_window > 0) {
    text += fmt::format(", {} of {} tokens", a.chunked ? "chunks" : "a window", a.sliding_window);
    if (a.full_every > 1) text += fmt::format(" except in one layer of {}", a.full_every);
  }
  return text;
}

std::string mixer_text(const Model& model) {
  const Mixer& m = *model.mixer;
  std::string text = fmt::format("{} in {} of {} layers, attention in {}: ", mixer_name(m),
                                 mixer_layers(model), model.layers, attention_layers(model));
  if (m.heads > 1)
    text += fmt::format("{} heads of {}", m.heads, m.width);
  else
    text += fmt::format("{} channels", m.channels());
  if (m.state > 0) text += fmt::format(", states of {}", m.state);
  return text + fmt::format(", {} taps", m.taps);
}

std::string feed_forward_text(const FeedForward& ffn) {
  std::string text = fmt::format("feed-forward: width {}", ffn.width);
  text += ffn.gated ? (ffn.fused_gate_up ? ", gate and up in one matrix" : ", gated") : ", ungated";
  return text + (ffn.bias ? ", biases" : "");
}

std::string experts_text(const Model& model) {
  const Experts& e = *model.experts;
  std::string text = fmt::format("experts: {} in {} of {} layers, {} per token, width {}", e.count,
                                 expert_layers(model), model.layers, e.per_token, e.width);
  if (e.shared_width > 0)
    text +=
        fmt::format(", shared width {}{}", e.shared_width, e.shared_gate ? " behind a gate" : "");
  if (e.bias) text += ", biases";
  if (e.fused) text += ", stored in one tensor per matrix";
  return text;
}

std::vector<std::string> facts_of(const Model& model) {
  std::vector<std::string> facts{
      fmt::format("{}: {} layers of width {}, vocabulary {}{}", model.architecture, model.layers,
                  model.hidden, model.vocabulary,
                  model.tied_embeddings ? ", head tied to the embedding" : ""),
      fmt::format("positions: {}, {} tokens at most",
                  positions_names[static_cast<std::size_t>(model.positions)],
                  model.longest_sequence),
      attention_text(model)};
  if (model.mixer) facts.push_back(mixer_text(model));
  if (model.feed_forward.width > 0) facts.push_back(feed_forward_text(model.feed_forward));
  if (model.experts) facts.push_back(experts_text(model));
  if (model.norms == Norms::behind) facts.emplace_back("norms follow attention and feed-forward");
  if (model.norms == Norms::both)
    facts.emplace_back("norms before and behind attention and feed-forward");
  if (model.norms == Norms::once)
    facts.emplace_back("attention and feed-forward read the result of one norm");
  if (model.norms_embedding) facts.emplace_back("a norm behind the embedding");
  return facts;
}

std::vector<std::string> row(std::string name, std::int64_t elements) {
  const double bytes = static_cast<double>(elements) * bytes_in_bf16;
  return {std::move(name), grouped(elements), fmt::format("{:.3f}", bytes / gigabyte),
          fmt::format("{:.3f}", bytes / gibibyte)};
}

Records dimension_records(const Model& model) {
  std::optional<Records> experts;
  if (const auto& e = model.experts)
    experts = Records{{"count", "in a layer", e->count},
                      {"per_token", "that a token goes to", e->per_token},
                      {"width", "of one", e->width},
                      {"shared_width", "of those for every token", e->shared_width},
                      {"first_dense", "layers at the bottom without experts", e->first_dense},
                      {"every", "of so many layers one has experts", e->every}};
  return {{"layers", "number", model.layers},
          {"hidden", "width", model.hidden},
          {"vocabulary", "tokens", model.vocabulary},
          {"longest_sequence", "tokens", model.longest_sequence},
          {"heads", "of queries", model.attention.heads},
          {"kv_heads", "of keys and values", model.attention.kv_heads},
          {"head_dim", "width of one", model.attention.head_dim},
          {"sliding_window", "tokens; 0: none", model.attention.sliding_window},
          {"feed_forward", "width", model.feed_forward.width},
          {"tied_embeddings", "the head is the embedding", model.tied_embeddings},
          {"experts", "of layers that have them", experts}};
}

}  // namespace

ModelEntry find_model(const Catalogue& data, const std::string& name_or_path) {
  ModelEntry entry{load_model(data, name_or_path), "", ""};
  const std::string name = resolve_model(data, name_or_path);
  if (is_config_path(name)) {
    entry.title = entry.model.architecture;
    entry.source = name;
  } else {
    const Document document = open_entry(data, model_shelf, name);
    entry.title = document.root().text("title");
    entry.source = document.root().text("source");
  }
  return entry;
}

std::string model_text(const ModelEntry& entry) {
  const ParameterCount count = count_parameters(entry.model);
  std::string text = fmt::format("{} (model): {}\n", entry.model.name, entry.title);
  for (const std::string& fact : facts_of(entry.model))
    text += fmt::format("  {}\n", wrap(fact, 100, 2));
  TextTable table{{"class", " parameters", " bf16 GB", " bf16 GiB"}};
  for (std::size_t i = 0; i < tensor_class_names.size(); ++i)
    if (count.elements[i] > 0)
      table.rows.push_back(row(std::string(tensor_class_names[i]), count.elements[i]));
  table.rows.push_back(row("all", count.total()));
  table.rows.push_back(row("active per token", active_parameters(entry.model)));
  text += fmt::format("\n{}\n  {} parameter tensors", render(table), grouped(count.tensors));
  if (count.buffers > 0) text += fmt::format(", {} buffer elements", grouped(count.buffers));
  return text + fmt::format("\n  source: {}\n", wrap(entry.source, 100, 10));
}

Records model_records(const ModelEntry& entry) {
  const ParameterCount count = count_parameters(entry.model);
  const auto total = static_cast<double>(count.total());
  Records parameters;
  for (std::size_t i = 0; i < tensor_class_names.size(); ++i)
    parameters.emplace_back(tensor_class_names[i], "elements of the class", count.elements[i]);
  parameters.emplace_back("all", "elements", total);
  parameters.emplace_back("active_per_token", "elements", active_parameters(entry.model));
  return {{"name", "of the model", entry.model.name},
          {"kind", "model", "model"},
          {"title", "what it is", entry.title},
          {"architecture", "as config.json calls it", entry.model.architecture},
          {"source", "where it is from", entry.source},
          {"facts", "in words", list_of(facts_of(entry.model))},
          {"dimensions", "in numbers", dimension_records(entry.model)},
          {"parameters", "exact counts", parameters},
          {"buffers", "elements that are not trained", count.buffers},
          {"tensors", "of parameters", count.tensors},
          {"bf16_bytes", "of all parameters", Bytes{total * bytes_in_bf16}},
          {"bf16_gb", "the same in GB", total * bytes_in_bf16 / gigabyte},
          {"bf16_gib", "the same in GiB", total * bytes_in_bf16 / gibibyte}};
}

Records model_sample() {
  ModelEntry entry;
  entry.model.experts.emplace().count = 1;
  return model_records(entry);
}

}  // namespace stepsim
