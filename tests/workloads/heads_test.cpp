// Heads of labels: what stands behind the last layer in place of the vocabulary.
#include "analysis/memory_timeline.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/tiny_step.hpp"
#include "tests/support/worker.hpp"
#include "workloads/model/model_catalog.hpp"

using namespace stepsim;

namespace {

// The tiny step on pairs, with a head of one number in place of 2000 words.
TinyStep rewarded(bool word_head = false) {
  TinyStep step = tiny_step(Sharding::zero3);
  step.job.method = Method::reward;
  step.job.packed = false;
  step.job.word_head = word_head;
  step.model.head = {.makes = ModelHead::Makes::labels, .labels = 1, .beside_words = word_head};
  return step;
}

double peak_with_head(const TinyStep& step) {
  return numbers_from_worker([&] {
           const Replayed replayed = play(step);
           return std::vector<double>{peak_memory(replayed.program.graph, replayed.trace, 0).bytes};
         })
      .front();
}

TinyStep pairs_without_reference() {
  TinyStep step = tiny_step(Sharding::zero3);
  step.job.method = Method::dpo;
  step.job.packed = false;
  step.job.reference_model = false;
  return step;
}

}  // namespace

TEST_CASE("a reward model has one vector in place of the head", "[workloads][heads]") {
  // Skywork-Reward-Llama-3.1-8B-v0.2 and the like: 7,504,928,768 parameters.
  Model llama = load_model(source_data(), "llama-3.1-8b");
  llama.head = {.makes = ModelHead::Makes::labels};
  CHECK(count_parameters(llama).total() == 8'030'261'248 - 128256 * 4096 + 4096);
  llama.head = {.makes = ModelHead::Makes::labels, .labels = 1, .bias = true, .beside_words = true};
  CHECK(count_parameters(llama).total() == 8'030'261'248 + 4096 + 1);
  // A head that is tied to the embedding leaves the embedding behind.
  Model gemma = load_model(source_data(), "gemma-2-2b");
  const std::int64_t before = count_parameters(gemma).total();
  gemma.head = {.makes = ModelHead::Makes::labels, .labels = 3};
  gemma.tied_embeddings = false;
  CHECK(count_parameters(gemma).total() == before + 3 * 2304);
}

TEST_CASE("a reward model has no logits over the vocabulary", "[workloads][heads]") {
  const TinyStep pairs = pairs_without_reference(), reward = rewarded(), both = rewarded(true);
  const double slots = reward.job.slots(), words = 2000;
  CHECK_THAT(slots, exactly(pairs.job.slots()));  // two texts a pair
  // Logits in 16 bits, their copy in 32, and its gradient are gone.
  CHECK(peak_with_head(reward) < peak_with_head(pairs) - 8 * slots * words);
  CHECK(peak_with_head(both) > peak_with_head(reward) + 4 * slots * words);
  CHECK(peak_with_head(both) < peak_with_head(pairs));
  CHECK(seconds_of(reward) < seconds_of(both));
}

TEST_CASE("a head that nobody learns from runs forward alone", "[workloads][heads]") {
  const TinyStep step = rewarded(true);
  const std::vector<Unit> head = head_units(step.model, step.stack, step.strategy, step.job);
  REQUIRE(head.size() == 3);
  CHECK(head[1].role == Role::head);
  CHECK(head[1].forward.size() == 2);  // the product, and the cast of its logits
  CHECK(head[1].backward.empty());
  CHECK(head[2].role == Role::score);
  CHECK(head[2].backward.size() == 3);  // the loss, and the gradients of inputs and weights
}
