// What holds for every model of the catalogue, with no test of its own.
#include <algorithm>
#include <map>

#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/model/hf_cache.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/model/model_catalog.hpp"

using namespace stepsim;

namespace {

std::vector<std::string> all_models() {
  return names_on(source_data(), model_shelf);
}

std::int64_t attention_sum(const Model& m) {
  const Attention& a = m.attention;
  const std::int64_t h = m.hidden, q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  if (a.latent) {  // in and out of each narrow vector, its norm, the shared part of the keys
    const Latent& l = *a.latent;
    const std::int64_t queries = l.query_width > 0 ? l.query_width * (h + q + 1) : h * q;
    const std::int64_t own = a.head_dim - l.rotary + l.value;
    const Indexer x = a.indexer.value_or(Indexer{});
    const std::int64_t keys = x.heads > 0 ? x.width * (h + 2) : 0;
    return queries + x.heads * (x.width * l.query_width + h) + keys + h * (l.width + l.rotary) +
           l.width * (1 + a.heads * own) + a.heads * l.value * h;
  }
  std::int64_t sum = (a.gated ? 3 : 2) * h * q + 2 * h * kv + (a.sinks ? a.heads : 0);
  if (a.qkv_bias) sum += q + 2 * kv;
  if (a.output_bias) sum += h;
  if (a.qk_norm == Attention::QkNorm::per_head) sum += 2 * a.head_dim;
  if (a.qk_norm == Attention::QkNorm::full_width) sum += q + kv;
  return sum;
}

std::int64_t mixer_sum(const Model& m) {
  const Mixer& x = *m.mixer;
  const std::int64_t h = m.hidden, d = x.channels(), shared = 2 * x.groups * x.state;
  switch (x.kind) {
    case MixerKind::convolution:
      return 4 * h * h + x.taps * h + (x.bias ? 4 * h : 0) + (x.taps_bias ? h : 0);
    case MixerKind::mamba: {
      const std::int64_t narrow = x.step_width + 2 * x.state;
      const std::int64_t steps = x.step_width * d + d;
      return 3 * h * d + x.taps * d + (x.taps_bias ? d : 0) + d * narrow + narrow + steps +
             d * x.state + d + (x.bias ? 2 * d + h : 0);
    }
    case MixerKind::mamba2:
      return h * (2 * d + shared + x.heads) + (x.taps + (x.taps_bias ? 1 : 0)) * (d + shared) +
             3 * x.heads + (x.normed ? d : 0) + d * h + (x.bias ? 2 * d + shared + x.heads + h : 0);
    case MixerKind::delta:
      return h * (2 * d + shared + 2 * x.heads) + x.taps * (d + shared) + 2 * x.heads + x.width +
             d * h;
  }
  return 0;
}

std::int64_t experts_sum(const Model& m) {
  const Experts& e = *m.experts;
  const std::int64_t h = m.hidden;
  const std::int64_t matrices = e.gated ? 3 : 2;
  const std::int64_t one = matrices * h * e.width + (e.bias ? (matrices - 1) * e.width + h : 0);
  const std::int64_t router = e.count * h + (e.bias ? e.count : 0);
  return e.count * one + router + matrices * h * e.shared_width + (e.shared_gate ? h : 0);
}

std::int64_t head_sum(const Model& m, std::int64_t norm) {
  using enum ModelHead::Makes;
  const std::int64_t h = m.hidden;
  std::int64_t sum = 0;
  if (m.head.has_words())
    sum += m.vocabulary * ((m.tied_embeddings ? 0 : h) + (m.head_bias ? 1 : 0));
  if (m.head.has_labels()) sum += m.head.labels * (h + (m.head.bias ? 1 : 0));
  if (!m.encoder) return sum + norm;
  const Encoder& e = *m.encoder;
  sum += e.segments * h + (e.final_norm ? norm : 0);
  if (m.attention.relative > 0) sum += m.attention.relative * h + norm;
  if (m.head.makes == labels_of_tokens || (m.head.makes == nothing && !e.pooler)) return sum;
  return sum + h * (h + (e.dense_bias ? 1 : 0)) + (m.head.makes == words || e.norms_all ? norm : 0);
}

// Layers, and what stands before and behind them, of four lines of a square and two rows each.
std::int64_t tower_sum(const Tower& t) {
  const std::int64_t h = t.hidden, norm = t.norm_bias ? 2 * h : h, biases = t.bias ? 1 : 0;
  const std::int64_t ups = t.gated ? 2 : 1;
  std::int64_t sum = t.layers * (4 * h * (h + biases) + (ups + 1) * h * t.width +
                                 biases * (ups * t.width + h) + 2 * norm + (t.scales ? 2 * h : 0));
  sum += h * (t.depth * t.patch * t.patch + (t.patch_bias ? 1 : 0) + t.classes + t.positions);
  sum += norm * ((t.norm_first ? 1 : 0) + (t.norm_last ? 1 : 0));
  for (const Tower::Projection& each : t.projector)
    sum += each.copies * each.out * (std::max<std::int64_t>(1, each.in) + (each.bias ? 1 : 0));
  return sum;
}

// The sum of the textbook, written without a look at tensors.
std::int64_t closed_form(const Model& m) {
  const std::int64_t h = m.hidden, norm = !m.norm_weights ? 0 : (m.norm_bias ? 2 : 1) * h;
  const std::int64_t norms = m.norms == Norms::both ? 2 * norm : norm;
  const FeedForward& f = m.feed_forward;
  const std::int64_t ups = f.gated ? 2 : 1;
  const std::int64_t dense = (ups + 1) * h * f.width + (f.bias ? ups * f.width + h : 0);
  std::int64_t total = m.vocabulary * h + head_sum(m, norm) + (m.tower ? tower_sum(*m.tower) : 0);
  if (m.positions == Positions::learned) total += (m.longest_sequence + m.spare_positions) * h;
  if (m.norms_embedding) total += norm;
  const std::int64_t second_norms = m.norms == Norms::once ? 0 : norms;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    const LayerKind kind = kind_of(m, layer);
    if (kind.mixes != LayerKind::Mixes::nothing) total += norms;
    if (kind.attends()) total += attention_sum(m);
    if (kind.has_mixer()) total += mixer_sum(m);
    if (kind.follows == LayerKind::Follows::feed_forward) total += second_norms + dense;
    if (kind.follows == LayerKind::Follows::experts) total += second_norms + experts_sum(m);
  }
  return total;
}

}  // namespace

TEST_CASE("every model of the catalogue loads and holds the parameters that it pins", "[laws]") {
  const std::vector<std::string> names = all_models();
  CHECK(names.size() >= 225);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Model model = load_model(source_data(), name);
    CHECK(model.name == name);
    CHECK(count_parameters(model).total() == closed_form(model));
  }
}

TEST_CASE("what a layer lists is what the model counts", "[laws]") {
  for (const std::string& name : all_models()) {
    CAPTURE(name);
    Model model = load_model(source_data(), name);
    model.tower.reset();  // its layers are listed apart
    ParameterCount sum;
    std::int64_t smallest = 1;
    const auto add = [&](const std::vector<Module>& modules) {
      for (const Module& module : modules)
        for (const Tensor& tensor : module.tensors) {
          smallest = std::min(smallest, tensor.elements);
          sum.elements[static_cast<std::size_t>(tensor.kind)] += tensor.elements;
          ++sum.tensors;
        }
    };
    add(outer_modules(model));
    for (std::int64_t layer = 0; layer < model.layers; ++layer) add(layer_modules(model, layer));
    const ParameterCount count = count_parameters(model);
    CHECK(smallest == 1);  // no tensor is empty
    CHECK(sum.elements == count.elements);
    CHECK(sum.tensors == count.tensors);
  }
}

TEST_CASE("a token meets no more parameters than there are", "[laws]") {
  for (const std::string& name : all_models()) {
    CAPTURE(name);
    const Model model = load_model(source_data(), name);
    const std::int64_t active = active_parameters(model);
    CHECK(active > 0);
    CHECK(active <= count_parameters(model).total());
    CHECK((active == count_parameters(model).total()) == !model.experts.has_value());
  }
}

TEST_CASE("a model has a mixer where some of its layers have one, and a list of all layers",
          "[laws]") {
  for (const std::string& name : all_models()) {
    CAPTURE(name);
    const Model model = load_model(source_data(), name);
    CHECK(model.mixer.has_value() == (mixer_layers(model) > 0));
    if (model.mixer) CHECK(model.kinds.size() == static_cast<std::size_t>(model.layers));
  }
}

// Of Hugging Face, or as tables have it.
TEST_CASE("every further name of a model is of no other model", "[laws]") {
  std::map<std::string, std::string> owners;
  for (const std::string& name : all_models()) {
    const Document document = open_entry(source_data(), model_shelf, name);
    for (const std::string& also : document.root().texts_or("also")) {
      CAPTURE(name, also);
      CHECK(owners.emplace(also, name).second);
      if (is_hf_id(also)) CHECK(resolve_model(source_data(), also) == name);
    }
  }
  CHECK(owners.size() > 60);
}

TEST_CASE("every architecture has a name of its own and a summary", "[laws]") {
  for (const Architecture& one : architectures()) {
    CAPTURE(one.name);
    CHECK_FALSE(one.summary.empty());
    std::size_t same = 0;
    for (const Architecture& other : architectures()) same += one.name == other.name ? 1 : 0;
    CHECK(same == 1);
  }
}
