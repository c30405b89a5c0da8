// A model's forward pass as units: nothing that the model holds is lost on the way.
#include "workloads/layers/units.hpp"

#include <algorithm>

#include "tests/support/exactly.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/program/visits.hpp"

using namespace stepsim;

namespace {

std::vector<double> tensors_of(const std::vector<Module>& modules) {
  std::vector<double> elements;
  for (const Module& module : modules)
    for (const Tensor& tensor : module.tensors)
      elements.push_back(static_cast<double>(tensor.elements));
  std::sort(elements.begin(), elements.end());
  return elements;
}

std::vector<double> tensors_of(const std::vector<Unit>& units) {
  std::vector<double> elements;
  for (const Unit& unit : units)
    for (std::int64_t i = 0; i < unit.times; ++i)
      elements.insert(elements.end(), unit.tensors.begin(), unit.tensors.end());
  std::sort(elements.begin(), elements.end());
  return elements;
}

}  // namespace

TEST_CASE("units hold the tensors of the model, no more and no fewer", "[workloads]") {
  const TinyStep tiny = tiny_step(Sharding::zero3);
  for (const std::string& name : names_on(source_data(), model_shelf)) {
    CAPTURE(name);
    const Model model = load_model(source_data(), name);
    const Load load = load_of(model, tiny.job, 0);
    Strategy strategy;
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      REQUIRE(tensors_of(layer_units(model, tiny.stack, strategy, load, layer)) ==
              tensors_of(layer_modules(model, layer)));
    std::vector<Unit> outer = head_units(model, tiny.stack, {}, tiny.job);
    outer.push_back(embedding_unit(model, tiny.stack, {}, load));
    CHECK(tensors_of(outer) == tensors_of(outer_modules(model)));
  }
}

TEST_CASE("experts exchanged hold a rank's share of what all hold", "[workloads]") {
  const TinyStep tiny = tiny_step(Sharding::zero2);
  for (const std::string& name : names_on(source_data(), model_shelf)) {
    const Model model = load_model(source_data(), name);
    if (!model.experts) continue;
    CAPTURE(name);
    const std::int64_t layer = model.layers - 1;
    Strategy strategy;
    strategy.experts.kernel = MoeKernel::tutel;
    strategy.experts.parallel = 4;
    const auto held = [&](bool experts) {
      double sum = 0;
      for (const Unit& unit :
           layer_units(model, tiny.stack, strategy, load_of(model, tiny.job, layer), layer))
        if ((unit.kind == TensorClass::expert) == experts) sum += unit.elements();
      return sum;
    };
    double experts = 0, others = 0;
    for (const Module& module : layer_modules(model, layer))
      for (const Tensor& tensor : module.tensors)
        (tensor.kind == TensorClass::expert ? experts : others) +=
            static_cast<double>(tensor.elements);
    CHECK_THAT(held(true), exactly(experts / 4));
    CHECK_THAT(held(false), exactly(others));
  }
}

TEST_CASE("a forward pass costs two operations per active parameter and token, and attention",
          "[workloads]") {
  for (const char* name : {"llama-3.1-8b", "qwen3-30b-a3b", "mixtral-8x7b", "mpt-7b", "phi-4"}) {
    CAPTURE(name);
    const Model model = load_model(source_data(), name);
    const TinyStep tiny = tiny_step(Sharding::zero3);
    const Load load = load_of(model, tiny.job, 0);
    double flops = 0, small = 0;
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      for (const Unit& unit : layer_units(model, tiny.stack, {}, load, layer)) {
        flops += static_cast<double>(unit.times) * flops_of(unit.forward);
        if (unit.kind == TensorClass::norm) small += unit.elements();
      }
    for (const Unit& unit : head_units(model, tiny.stack, {}, tiny.job))
      flops += flops_of(unit.forward);
    small += static_cast<double>(model.hidden);
    const double table = static_cast<double>(model.vocabulary * model.hidden);
    const double looked_up = model.tied_embeddings ? 0 : table;  // reading a row costs nothing
    const double active = static_cast<double>(active_parameters(model)) - small - looked_up;
    const double heads = static_cast<double>(model.attention.heads * model.attention.head_dim);
    const double attention = 4 * heads * load.attended * static_cast<double>(model.layers);
    CHECK_THAT(flops, WithinRel(2 * load.tokens * active + attention, 1e-3));
  }
}

TEST_CASE("what one norm makes for attention and feed-forward is kept once", "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero3);
  tiny.model.experts.reset();
  const auto saved = [&](Norms norms) {
    tiny.model.norms = norms;
    double sum = 0;
    for (const Unit& unit :
         layer_units(tiny.model, tiny.stack, {}, load_of(tiny.model, tiny.job, 0), 0))
      if (unit.kind != TensorClass::norm) sum += unit.memory.saved;
    return sum;
  };
  const double tokens = load_of(tiny.model, tiny.job, 0).tokens;
  const double hidden = static_cast<double>(tiny.model.hidden);
  CHECK_THAT(saved(Norms::before) - saved(Norms::once), exactly(2 * tokens * hidden));
}

TEST_CASE("a causal query sees itself and all before it, within its window", "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero3);
  tiny.job.sequence = 100;
  tiny.job.micro_batch = 3;
  CHECK(load_of(tiny.model, tiny.job, 0).attended == 3 * 100 * 101 / 2);
  tiny.model.attention.sliding_window = 10;
  CHECK(load_of(tiny.model, tiny.job, 0).attended == 3 * (10 * 11 / 2 + 90 * 10));
  tiny.model.attention.full_every = 2;
  CHECK(load_of(tiny.model, tiny.job, 1).attended == 3 * 100 * 101 / 2);
  tiny.job.method = Method::dpo;
  CHECK(load_of(tiny.model, tiny.job, 1).tokens == 2 * 3 * 100);
}

TEST_CASE("a chunk of attention knows nothing of the one before", "[workloads]") {
  Model model = tiny_model();
  model.attention.sliding_window = 10;
  model.attention.chunked = true;
  CHECK(keys_seen(model, 0, 100) == 10 * (10 * 11 / 2));
  CHECK(keys_seen(model, 0, 37) == 3 * (10 * 11 / 2) + 7 * 8 / 2);
  CHECK(keys_seen(model, 0, 4) == 4 * 5 / 2);
}

TEST_CASE("tokens see their own document only: its length's second moment counts", "[workloads]") {
  const Model model = tiny_model();
  const double row = 1e9;  // nothing is cut
  CHECK_THAT(keys_per_token(model, 0, {100, 0}, row, true), exactly(101.0 / 2));
  for (const double spread : {0.1, 0.5, 1.0, 2.0}) {
    CAPTURE(spread);
    // (E[L^2] + E[L]) / 2 over E[L]
    CHECK_THAT(keys_per_token(model, 0, {100, spread}, row, true),
               WithinRel((100 * (1 + spread * spread) + 1) / 2, 1e-6));
  }
  // A document longer than its row is cut, and no part sees another.
  CHECK_THAT(keys_per_token(model, 0, {300, 0}, 100, true), exactly(101.0 / 2));
  CHECK(keys_per_token(model, 0, {100, 1}, 200, true) <
        keys_per_token(model, 0, {100, 1}, 400, true));
}

TEST_CASE("kernels that know documents do less than those that take a row for one", "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero3);
  tiny.job.sequence = 100;
  tiny.job.micro_batch = 2;
  tiny.job.documents = {10, 0};
  CHECK_THAT(load_of(tiny.model, tiny.job, 0).attended, exactly(2 * 10 * (10 * 11 / 2)));
  CHECK_THAT(load_of(tiny.model, tiny.job, 0).in_rows, exactly(2 * (100 * 101 / 2)));
  // A padded row holds one document; what is behind it, a kernel with lengths does not look at.
  tiny.job.packed = false;
  tiny.job.documents = {};
  tiny.job.fill = 0.6;
  const Load padded = load_of(tiny.model, tiny.job, 0);
  CHECK_THAT(padded.attended, exactly(2 * (60 * 61 / 2)));
  CHECK_THAT(padded.wanted, exactly(padded.attended));
  CHECK(padded.tokens == 200);
}

TEST_CASE("a compiled layer launches fewer kernels over fewer bytes, with the same products",
          "[workloads]") {
  const TinyStep tiny = tiny_step(Sharding::zero3);
  const Load load = load_of(tiny.model, tiny.job, 0);
  const auto sum = [&](bool compiled, auto of_row) {
    Strategy strategy;
    strategy.compiled = compiled;
    double total = 0;
    for (const Unit& unit : layer_units(tiny.model, tiny.stack, strategy, load, 0))
      for (const KernelRow& row : unit.forward) total += of_row(row);
    return total;
  };
  const double t = 128, h = 64, q = 64, kv = 32, w = 192;
  const auto launches = [](const KernelRow& row) { return row.launches; };
  // 7 products and attention; two norms of 6, a rotation of 10, two of an activation, 2 residuals.
  CHECK(sum(false, launches) == 7 + 1 + 2 * 6 + 10 + 2 + 2);
  CHECK(sum(true, launches) == 7 + 1 + 2 + 1 + 1);
  const auto streamed = [](const KernelRow& row) {
    return row.kind == KernelClass::memory ? row.bytes : 0;
  };
  CHECK_THAT(sum(false, streamed), exactly(t * (2 * 28 * h + 20 * (q + kv) + 10 * w + 2 * 6 * h)));
  CHECK_THAT(sum(true, streamed), exactly(t * (2 * 8 * h + 4 * (q + kv) + 6 * w)));
  const auto flops = [](const KernelRow& row) { return row.flops; };
  CHECK(sum(false, flops) == sum(true, flops));
}

TEST_CASE("a fused loss holds a chunk of logits and both gradients, an unfused one all logits",
          "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero3);
  const Load load = load_of(tiny.model, tiny.job, 0);
  const double t = load.tokens, h = 64, v = 2000;
  const auto head = [&] {
    return head_units(tiny.model, tiny.stack, tiny.strategy, tiny.job).back();
  };
  const auto saved = [&] { return head().memory.saved; };
  CHECK_THAT(saved(), exactly(4 * t * v + 2 * t * h));
  tiny.stack.cross_entropy = CrossEntropy::fused;
  REQUIRE(t == 128);
  const double chunk = 4;  // 128 tokens in ceil(2000 / 64) parts
  CHECK_THAT(saved(), exactly(chunk * v * (2 + 4) + 2 * t * h + 2 * v * h));
  // A scenario has the last word.
  tiny.strategy.cross_entropy = CrossEntropy::logits;
  CHECK_THAT(saved(), exactly(4 * t * v + 2 * t * h));
}

TEST_CASE("what a loss needs for each logit, at the most", "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero3);
  const double t = load_of(tiny.model, tiny.job, 0).tokens, h = 64, v = 2000;
  const auto most = [&](CrossEntropy kind, bool held) {
    tiny.stack.holds_logits = held;
    tiny.strategy.cross_entropy = kind;
    const Unit head = head_units(tiny.model, tiny.stack, tiny.strategy, tiny.job).back();
    const double passing = std::max(head.memory.forward, head.memory.backward);
    return (head.memory.saved - 2 * t * h + passing) / (t * v);
  };
  // The logarithmic softmax, its gradient, that of the logits; and the logits if they have a name.
  CHECK_THAT(most(CrossEntropy::logits, false), exactly(4.0 + 4 + 4));
  CHECK_THAT(most(CrossEntropy::logits, true), exactly(2.0 + 4 + 4 + 4));
  CHECK_THAT(most(CrossEntropy::logits_16, true), exactly(2.0 + 2 + 2 + 2));
  CHECK_THAT(most(CrossEntropy::logits_32, true), exactly(4.0 + 4 + 4 + 4));
  tiny.stack.casts_logits = true;  // and the name is of what they were cast to
  CHECK_THAT(most(CrossEntropy::logits, true), exactly(4.0 + 4 + 4 + 4));
  tiny.stack.casts_logits = false;
  // A model that shifts them copies them once more, in 32 bits.
  tiny.strategy.shifts_logits = true;
  CHECK_THAT(most(CrossEntropy::logits, false), exactly(2.0 + 4 + 4 + 4));
  tiny.strategy.shifts_logits = false;
  tiny.stack.casts_outputs = true;  // behind the model's forward call
  CHECK_THAT(most(CrossEntropy::logits, true), exactly(4.0 + 4 + 4 + 4));
  tiny.stack.casts_outputs = false;
  // The logits themselves are what is kept.
  CHECK_THAT(most(CrossEntropy::kernel, true), exactly(2.0 + 2));
  CHECK_THAT(most(CrossEntropy::kernel_32, true), exactly(4.0 + 4));
  CHECK_THAT(most(CrossEntropy::in_place, true), exactly(2.0));
}

TEST_CASE("what preferences need for each logit", "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero3);
  tiny.job.method = Method::dpo;
  tiny.job.micro_batch = 2;
  const double t = load_of(tiny.model, tiny.job, 0).tokens, h = 64, v = 2000;
  const auto head = [&](CrossEntropy kind) {
    tiny.strategy.cross_entropy = kind;
    return head_units(tiny.model, tiny.stack, tiny.strategy, tiny.job).back();
  };
  const auto saved = [&](CrossEntropy kind) {
    return (head(kind).memory.saved - 2 * t * h) / (t * v);
  };
  // Probabilities in the type of the logits, or from a copy of them in 32 bits.
  CHECK_THAT(saved(CrossEntropy::logits_16), exactly(2.0));
  CHECK_THAT(saved(CrossEntropy::logits), exactly(4.0));
  CHECK_THAT(head(CrossEntropy::logits).memory.forward, exactly(4 * t * v));
  CHECK_THAT(head(CrossEntropy::logits).memory.backward, exactly(8 * t * v));
  // Gradients of rows stand where their probabilities stood, until they are put together.
  CHECK_THAT(head(CrossEntropy::logits_16).memory.backward, exactly(2 * t * v));
  // Each answer is a kernel in 16 bits.
  CHECK(head(CrossEntropy::logits_16).forward.back().launches == 4 * 1);
  // A reference has its logits, and beside them probabilities: of a row in 16 bits, of all in 32.
  const auto of_reference = [&](CrossEntropy kind) {
    std::vector<Unit> parts = {head(kind)};
    part_from_loss(parts);
    return parts.back().memory.passing / (t * v);
  };
  CHECK_THAT(of_reference(CrossEntropy::logits_16), exactly(2.0 + 2.0 / 4));
  CHECK_THAT(of_reference(CrossEntropy::logits), exactly(4.0 + 4));
  // The copy has a name until the reference has run, if there is one.
  tiny.stack.casts_logits = true;
  CHECK_THAT(saved(CrossEntropy::logits), exactly(4.0 + 4));
  CHECK_THAT(head(CrossEntropy::logits).memory.forward, exactly(0.0));
  tiny.job.reference_model = false;
  CHECK_THAT(saved(CrossEntropy::logits), exactly(4.0));
  // Liger's runs pair by pair, and keeps the gradient of the head alone.
  CHECK_THAT(head(CrossEntropy::fused).memory.forward, exactly((2 + 4 + 4) * t / 2 * v));
  CHECK_THAT(head(CrossEntropy::fused).memory.saved, exactly(2 * t * h + 2 * v * h));
}

TEST_CASE("a loss over some words at a time keeps nothing and multiplies again", "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero3);
  tiny.strategy.cross_entropy = CrossEntropy::words_32;
  const double t = load_of(tiny.model, tiny.job, 0).tokens, h = 64, v = 2000;
  const Unit head = head_units(tiny.model, tiny.stack, tiny.strategy, tiny.job).back();
  CHECK_THAT(head.memory.saved, exactly(2 * t * h));
  CHECK_THAT(flops_of(head.forward), exactly(2 * t * h * v));
  CHECK_THAT(flops_of(head.backward), exactly(3 * 2 * t * h * v));
  CHECK(head.forward.front().type == ProductType::tf32);
  CHECK(head.backward.back().share == 1);  // gradients in 16
  // Frozen or not: both gradients are found.
  tiny.strategy.lora = {4, LoraTargets::linear};
  const Unit frozen = head_units(tiny.model, tiny.stack, tiny.strategy, tiny.job).back();
  CHECK_THAT(flops_of(frozen.backward), exactly(flops_of(head.backward)));
}

TEST_CASE("a loss in chunks of tokens has gradients of one chunk at a time", "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero3);
  const double t = load_of(tiny.model, tiny.job, 0).tokens, h = 64, v = 2000;
  const auto head = [&](CrossEntropy kind, bool compiled) {
    tiny.strategy.cross_entropy = kind;
    tiny.strategy.compiled = compiled;
    return head_units(tiny.model, tiny.stack, tiny.strategy, tiny.job).back();
  };
  const Unit whole = head(CrossEntropy::logits, false), chunks = head(CrossEntropy::chunks, false);
  CHECK_THAT(chunks.memory.backward, exactly(whole.memory.backward / 8));
  CHECK_THAT(flops_of(chunks.forward), exactly(flops_of(whole.forward)));
  CHECK_THAT(chunks.memory.saved - 2 * t * h, exactly((2 + 4) * t * v));
  CHECK_THAT(head(CrossEntropy::chunks, true).memory.saved - 2 * t * h, exactly(2 * t * v));
  // With the head no logits wait in 16 bits.
  CHECK_THAT(chunks.memory.saved - head(CrossEntropy::head_chunks, false).memory.saved,
             exactly(2 * t * v));
  // Chunks may be of so many tokens, and a loop may have a name for cast logits.
  tiny.stack.loss_chunk = 32;
  tiny.stack.holds_logits = true;
  const Unit named = head(CrossEntropy::head_chunks, false);
  CHECK_THAT(named.memory.backward, exactly(whole.memory.backward * 32 / t));
  CHECK_THAT(named.memory.saved - 2 * t * h, exactly((4 + 4) * t * v));
}

TEST_CASE("ranks that gather logits hold those of the whole vocabulary", "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero1);
  tiny.strategy.tensor_parallel.size = 2;
  const auto kept = [&] { return units_of(tiny.input()).head.back().memory.saved; };
  const double t = tiny.job.slots(), v = 2000;
  CHECK_THAT(kept(), exactly(4 * t * v / 2));
  CHECK_THAT(units_of(tiny.input()).head.back().memory.backward,
             exactly((4.0 + 4 + 4) * t * v / 2));
  tiny.strategy.tensor_parallel.gathers_logits = true;
  CHECK_THAT(kept(), exactly(4 * t * v));
}

TEST_CASE("a loss over logits is a unit behind the head, with what it needs", "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero3);
  const double t = load_of(tiny.model, tiny.job, 0).tokens, h = 64, v = 2000;
  const auto units = [&](CrossEntropy kind) {
    tiny.strategy.cross_entropy = kind;
    return units_of(tiny.input()).head;
  };
  const std::vector<Unit> whole = units(CrossEntropy::chunks), parts = units(CrossEntropy::logits);
  REQUIRE(whole.size() == 2);
  REQUIRE(parts.size() == 3);
  const Unit &head = parts[1], &loss = parts[2];
  CHECK(loss.role == Role::loss);
  CHECK(loss.tensors.empty());
  CHECK(head.forward.size() == 1);
  CHECK(loss.forward.size() == 1);
  CHECK_THAT(flops_of(head.backward), exactly(2 * 2 * t * h * v));
  CHECK(flops_of(loss.backward) == 0);
  CHECK_THAT(head.memory.saved, exactly(2 * t * h));
  CHECK_THAT(loss.memory.saved, exactly(4 * t * v));
  CHECK_THAT(loss.memory.backward, exactly((4.0 + 4) * t * v));
  CHECK_THAT(loss.memory.piece, exactly(4 * t * v));
  CHECK_THAT(head.memory.backward, exactly(2 * t * v));  // the gradient of the logits
  // In place there is one tensor of logits, from the head to the head.
  const std::vector<Unit> in_place = units(CrossEntropy::in_place);
  CHECK_THAT(in_place[1].memory.saved, exactly(2 * t * h + 2 * t * v));
  CHECK(in_place[1].memory.forward == 0);
  CHECK(in_place[1].memory.backward == 0);
  CHECK(in_place[2].memory.saved == 0);
}

TEST_CASE("what a flash kernel gives is kept once, for itself and for the product behind",
          "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero2);
  const double t = load_of(tiny.model, tiny.job, 0).tokens, q = 64, kv = 32, heads = 4;
  const auto saved = [&](std::string_view name) {
    const ModelUnits units = units_of(tiny.input());
    for (const Unit& unit : units.layers.front())
      if (unit.name == name) return unit.memory.saved;
    return -1.0;
  };
  CHECK_THAT(saved("self_attn.attend"), exactly(2 * t * (q + 2 * kv + q) + 4 * t * heads));
  CHECK(saved("self_attn.o_proj") == 0);
  tiny.stack.repeats_heads = true;
  CHECK_THAT(saved("self_attn.attend"), exactly(2 * t * (3 * q + q) + 4 * t * heads));
  tiny.strategy.attention = AttentionKernel::eager;  // nobody else keeps it
  CHECK_THAT(saved("self_attn.o_proj"), exactly(2 * t * q));
  tiny.strategy.attention = AttentionKernel::flash;
  tiny.strategy.precision.name = "narrow";  // the product keeps what it was cast to
  tiny.strategy.precision.saved = 1;
  tiny.strategy.precision.type = ProductType::fp8;
  tiny.strategy.precision.products[static_cast<std::size_t>(Products::attention)] = true;
  CHECK_THAT(saved("self_attn.o_proj"), exactly(1 * t * q));
}

TEST_CASE("gradients of a fused activation take the place of what it kept, or a place of their own",
          "[workloads]") {
  TinyStep tiny = tiny_step(Sharding::zero2);
  const double t = load_of(tiny.model, tiny.job, 0).tokens, w = 192;
  tiny.stack.fused.activation = true;
  const auto gradient = [&] {
    const ModelUnits units = units_of(tiny.input());
    for (const Unit& unit : units.layers.front())
      if (unit.role == Role::activation) return unit.memory.gradient;
    return -1.0;
  };
  CHECK_THAT(gradient(), exactly(2 * t * 2 * w));
  tiny.stack.fused.in_place = true;
  CHECK(gradient() == 0);
}
