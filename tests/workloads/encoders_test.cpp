// Encoders: their heads, what their tokens attend to, and texts that are compared.
#include <algorithm>
#include <cmath>

#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/step/model_flops.hpp"
#include "workloads/strategy/load.hpp"

using namespace stepsim;

namespace {

std::int64_t parameters_with_head(const char* name, ModelHead::Makes makes,
                                  std::int64_t labels = 2) {
  Model model = load_model(source_data(), name);
  model.head = {.makes = makes, .labels = labels, .bias = true};
  model.tied_embeddings = model.tied_embeddings && model.head.has_words();
  return count_parameters(model).total();
}

TinyStep encoding(Method method) {
  TinyStep step = tiny_step(Sharding::zero0);
  step.job.method = method;
  step.job.packed = false;
  step.model.encoder = Encoder{};
  step.model.tied_embeddings = true;
  if (method == Method::embed) {
    step.model.head.makes = ModelHead::Makes::nothing;
    step.model.tied_embeddings = false;
  }
  return step;
}

}  // namespace

TEST_CASE("heads of encoders have the published numbers of parameters", "[workloads][encoders]") {
  using enum ModelHead::Makes;
  CHECK(parameters_with_head("bert-base", labels) == 109'483'778);
  CHECK(parameters_with_head("bert-base", words) == 109'514'298);
  CHECK(parameters_with_head("bge-base-en", nothing) == 109'482'240);
  CHECK(parameters_with_head("bge-base-en", words) == 109'514'298);
  CHECK(parameters_with_head("roberta-base", labels) == 124'647'170);
  CHECK(parameters_with_head("distilbert-base", labels) == 66'955'010);
  CHECK(parameters_with_head("deberta-v3-base", labels) == 184'423'682);
  // Nine kinds of names, with a bias each, on every token, and no matrix before.
  CHECK(parameters_with_head("bert-base-cased", labels_of_tokens, 9) == 107'726'601);
  CHECK(parameters_with_head("modernbert-base", labels) == 149'655'232 - 50'368 + 2 * 768 + 2);
}

TEST_CASE("tokens of an encoder attend to both sides", "[workloads][encoders]") {
  const Model bert = load_model(source_data(), "bert-base"),
              modern = load_model(source_data(), "modernbert-base");
  CHECK(keys_seen(bert, 0, 300) == 300 * 300);
  // Layers 0, 3, 6 ... of ModernBERT see all, the others 64 tokens to each side.
  const auto counted = [](int tokens) {
    double pairs = 0;
    for (int i = 0; i < tokens; ++i) pairs += std::min(i, 64) + std::min(tokens - 1 - i, 64) + 1;
    return pairs;
  };
  CHECK(window_of(modern, 0) == 0);
  CHECK(window_of(modern, 21) == 0);
  CHECK(window_of(modern, 1) == 128);
  CHECK_THAT(keys_seen(modern, 1, 1000), exactly(counted(1000)));
  CHECK_THAT(keys_seen(modern, 1, 100), exactly(counted(100)));
  CHECK_THAT(keys_seen(modern, 1, 40), exactly(counted(40)));
  TinyStep causal = tiny_step(Sharding::zero0), both = encoding(Method::mlm);
  causal.job.packed = false;
  const double length = static_cast<double>(causal.job.sequence);
  CHECK_THAT(model_flops(both.input()).attention,
             exactly(model_flops(causal.input()).attention * 2 * length / (length + 1)));
}

TEST_CASE("texts are compared without a head", "[workloads][encoders]") {
  TinyStep step = encoding(Method::embed);
  step.job.texts = 3;
  step.job.micro_batch = 4;
  step.job.accumulation = 5;
  CHECK(step.job.rows() == 12);
  const std::vector<Unit> head = head_units(step.model, step.stack, step.strategy, step.job);
  const auto similar = std::ranges::find_if(
      head.back().forward, [](const KernelRow& row) { return row.name == "similarities"; });
  REQUIRE(similar != head.back().forward.end());
  CHECK_THAT(similar->flops, exactly(2.0 * 4 * static_cast<double>(step.model.hidden) * (4 * 2)));
  // With a cached loss all of the step's are compared, after a pass that keeps nothing.
  step.job.cached_loss = true;
  const std::vector<Unit> cached = head_units(step.model, step.stack, step.strategy, step.job);
  const auto wider = std::ranges::find_if(
      cached.back().forward, [](const KernelRow& row) { return row.name == "similarities"; });
  CHECK_THAT(wider->flops, exactly(5 * similar->flops));
  CHECK(other_passes(step.job, {}).without_gradients == 1);
}
