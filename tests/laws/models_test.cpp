// What holds for every model of the catalogue, with no test of its own.
#include <algorithm>

#include "tests/support/catch.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/model/model_catalog.hpp"

using namespace stepsim;

namespace {

std::vector<std::string> all_models() {
  return names_on(STEPSIM_SOURCE_DATA, model_shelf);
}

// The sum of the textbook, written without a look at tensors.
std::int64_t closed_form(const Model& m) {
  const Attention& a = m.attention;
  const std::int64_t h = m.hidden, q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  const std::int64_t norm = m.norm_bias ? 2 * h : h;
  std::int64_t attention = 2 * h * q + 2 * h * kv + (a.sinks ? a.heads : 0);
  if (a.qkv_bias) attention += q + 2 * kv;
  if (a.output_bias) attention += h;
  if (a.qk_norm == Attention::QkNorm::per_head) attention += 2 * a.head_dim;
  if (a.qk_norm == Attention::QkNorm::full_width) attention += q + kv;
  if (a.latent) {  // in and out of each narrow vector, its norm, the shared part of the keys
    const Latent& l = *a.latent;
    const std::int64_t queries = l.query_width > 0 ? l.query_width * (h + q + 1) : h * q;
    const std::int64_t own = a.head_dim - l.rotary + l.value;
    attention =
        queries + h * (l.width + l.rotary) + l.width * (1 + a.heads * own) + a.heads * l.value * h;
  }
  const FeedForward& f = m.feed_forward;
  const std::int64_t ups = f.gated ? 2 : 1;
  const std::int64_t dense = (ups + 1) * h * f.width + (f.bias ? ups * f.width + h : 0);
  std::int64_t total = m.layers * (attention + 2 * norm) + norm;
  total += m.vocabulary * h * (m.tied_embeddings ? 1 : 2);
  if (m.positions == Positions::learned) total += m.longest_sequence * h;
  const std::int64_t sparse = expert_layers(m);
  total += (m.layers - sparse) * dense;
  if (!m.experts) return total;
  const Experts& e = *m.experts;
  const std::int64_t one = 3 * h * e.width + (e.bias ? 2 * e.width + h : 0);
  const std::int64_t router = e.count * h + (e.bias ? e.count : 0);
  return total +
         sparse * (e.count * one + router + 3 * h * e.shared_width + (e.shared_gate ? h : 0));
}

}  // namespace

TEST_CASE("every model of the catalogue loads and holds the parameters that it pins", "[laws]") {
  const std::vector<std::string> names = all_models();
  CHECK(names.size() >= 60);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Model model = load_model(STEPSIM_SOURCE_DATA, name);
    CHECK(model.name == name);
    CHECK(count_parameters(model).total() == closed_form(model));
  }
}

TEST_CASE("what a layer lists is what the model counts", "[laws]") {
  for (const std::string& name : all_models()) {
    CAPTURE(name);
    const Model model = load_model(STEPSIM_SOURCE_DATA, name);
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
    const Model model = load_model(STEPSIM_SOURCE_DATA, name);
    const std::int64_t active = active_parameters(model);
    CHECK(active > 0);
    CHECK(active <= count_parameters(model).total());
    CHECK((active == count_parameters(model).total()) == !model.experts.has_value());
  }
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
