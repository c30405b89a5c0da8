#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/lists.hpp"
#include "workloads/layers/layer_writer.hpp"
#include "workloads/layers/task_heads.hpp"

namespace stepsim {
namespace {

// This is what a loss over logits in memory holds, in bytes for each of them, and what it runs.
struct LossCost {
  double output;    // of a logit as the head gives it
  double kept;      // for the backward pass
  double forward;   // beside that, only while it runs
  double backward;  // likewise
  Operator run_forward, run_backward;
};

// PyTorch's own keeps the logarithmic softmax; the gradient of that and of the logits exist at
// once. In 32 bits a copy of the logits comes first, and their gradient is cast back. A single
// kernel reads the logits for their largest and the sum, and again for the gradient.
LossCost loss_cost(CrossEntropy kind) {
  switch (kind) {
    case CrossEntropy::logits_16:
      return {2, 2, 2, 4, Operator::cross_entropy_16, Operator::cross_entropy_16_backward};
    case CrossEntropy::logits_32:
      return {4, 4, 4, 8, Operator::cross_entropy_32, Operator::cross_entropy_32_backward};
    case CrossEntropy::kernel:
      return {2, 2, 0, 2, Operator::cross_entropy_kernel, Operator::cross_entropy_kernel_backward};
    case CrossEntropy::kernel_32:
      return {2,
              4,
              2,
              4,
              Operator::cross_entropy_kernel_32,
              Operator::cross_entropy_kernel_32_backward};
    case CrossEntropy::in_place:
      return {2, 2, 0, 0, Operator::cross_entropy_kernel, Operator::cross_entropy_kernel_backward};
    default:
      return {2, 4, 6, 8, Operator::cross_entropy, Operator::cross_entropy_backward};
  }
}

// Copies logits without their last row; their gradient is copied into zeros.
void shift_logits(Unit& head, double bytes) {
  head.forward.push_back(memory("shift", 2 * bytes, 1));
  head.backward.insert(head.backward.begin(), memory("shift", 3 * bytes, 2));
}

// Writes the head and the loss behind it, over all logits at once. Preferences need the probability
// of every token: in 16 bits row by row, in 32 bits from a copy of all logits, which LLaMA-Factory
// has a name for until the reference has run, too.
void loss_over_logits(Unit& head, const Stack& stack, const Strategy& strategy, const Job& job,
                      double logits) {
  const CrossEntropy kind = cross_entropy_of(stack, strategy);
  const TensorParallel& tensor = strategy.tensor_parallel;
  const bool as_they_come = kind == CrossEntropy::kernel || kind == CrossEntropy::in_place;
  const bool single = as_they_come || kind == CrossEntropy::kernel_32;
  LossCost cost = loss_cost(kind);
  const bool pairs = job.compares_answers(), casts = pairs && kind == CrossEntropy::logits;
  const bool by_rows = pairs && kind == CrossEntropy::logits_16;
  if (casts) cost.forward = 4;  // those in 16 bits are gone when the softmax begins
  const bool shifts = strategy.shifts_logits && !pairs && !single;
  if (shifts) cost.forward += cost.kept;
  if (by_rows) cost.backward = 2;  // each row's gradient takes the place of what the row had saved
  if (as_they_come)
    for (double* bytes : {&cost.output, &cost.kept, &cost.forward, &cost.backward})
      *bytes *= strategy.precision.numbers / bytes_16;
  // Over a divided vocabulary PyTorch's loss goes operator by operator: one tensor more.
  const bool divided = ranks_of_head(tensor) > 1 && !tensor.gathers_logits && !single;
  const double more = divided ? cost.kept : 0;
  const auto row = [&](Operator op) {
    const Operators::Count& one = stack.operators[op];
    const Operators::Count& beside = stack.operators[Operator::cross_entropy_divided];
    KernelRow kernels = counted(stack.operators, op, logits);
    kernels.bytes = (one.bytes + beside.bytes * more) * logits;
    if (divided) kernels.launches += beside.kernels;
    return kernels;
  };
  if (kind == CrossEntropy::logits_32) head.forward.front().type = ProductType::tf32;
  head.backward = backward_of(head.forward, stack.operators);
  if (by_rows) {
    head.forward.push_back(counted(stack.operators, Operator::log_softmax, logits, 1,
                                   static_cast<double>(job.rows())));
    const std::vector<KernelRow> back = backward_of({head.forward.back()}, stack.operators);
    head.backward.insert(head.backward.begin(), back.begin(), back.end());
  } else {
    if (shifts) shift_logits(head, cost.kept * logits);
    head.forward.push_back(row(cost.run_forward));
    head.backward.insert(head.backward.begin(), row(cost.run_backward));
  }
  const double named = stack.casts_logits || stack.casts_outputs ? 4 : cost.output;
  const bool holds =
      pairs ? casts && stack.casts_logits && job.has_reference() : stack.holds_logits && !single;
  const double held = !holds ? 0 : pairs ? 4 : named;
  head.memory.saved += (cost.kept + held) * logits;
  head.memory.forward = (cost.forward + more - held) * logits;
  head.memory.backward = (cost.backward + more) * logits;
  head.memory.piece = std::max(cost.output, cost.kept) * logits;
  const bool in_place = kind == CrossEntropy::in_place;
  // A reference finds probabilities beside its logits, and in 16 bits those of a row are gone when
  // the next one comes.
  const double rows = by_rows ? static_cast<double>(job.rows()) : 1,
               probabilities = in_place ? 0 : cost.kept / rows;
  const std::size_t rows_of_loss = shifts ? 2 : 1;
  head.loss = {.forward = rows_of_loss,
               .backward = rows_of_loss,
               .saved = in_place ? 0 : (cost.kept + held) * logits,
               .passing = (cost.forward + more + probabilities) * logits,
               .logits = in_place ? 0 : cost.output * logits,
               .gradient = in_place ? 0 : cost.output * logits};
}

// Liger's loss of preferences: pair after pair with the head, in the forward pass, which finds both
// gradients as well.
void loss_of_pairs(Unit& head, const Operators& all, double numbers, double pairs, double tokens,
                   double vocabulary) {
  const double chunk = tokens / pairs * vocabulary;
  head.forward.push_back(counted(all, Operator::cross_entropy_fused, tokens, vocabulary, pairs));
  head.memory.forward = (numbers + 4 + 4) * chunk;
  head.memory.gradient = 0;
  head.backward = backward_of(head.forward, all);
}

// The head and the probabilities of the tokens, so many words of the vocabulary at a time, in 32
// bits and operator by operator, as trainers of RL do it that need an entropy as well. Nothing of
// it is kept: the backward pass multiplies again, and finds both gradients whether they are wanted
// or not.
void loss_over_words(Unit& head, const Operators& all, double number_bytes, double tokens,
                     double hidden, double vocabulary) {
  constexpr double words = 2048;
  const double chunks = std::ceil(vocabulary / words), logits = tokens * vocabulary;
  KernelRow product = head.forward.front();
  product.launches = chunks;
  const std::vector<KernelRow> gradients = backward_of({product}, all);
  product.type = ProductType::tf32;
  // Each chunk casts its inputs up, and adds what it gives to their gradients.
  const double inputs = chunks * tokens * hidden + vocabulary * hidden;
  const double casts = all[Operator::cross_entropy_casts].bytes * inputs;
  KernelRow forward = counted(all, Operator::cross_entropy_words, logits, 1, chunks);
  forward.bytes += casts;
  KernelRow backward = counted(all, Operator::cross_entropy_words_backward, logits, 1, chunks);
  backward.bytes += casts;
  backward.bytes += all[Operator::cross_entropy_sums].bytes * inputs;
  head.forward = {product, forward};
  head.backward = {product, backward};
  head.backward.insert(head.backward.end(), gradients.begin(), gradients.end());
  const double chunk = tokens * std::min(words, vocabulary);
  head.memory.forward = (4 + 4 + 4) * chunk + 4 * tokens * hidden;
  head.memory.backward = (4 + 4 + 4 + 4 + number_bytes) * chunk + 4 * tokens * hidden +
                         number_bytes * vocabulary * hidden;
}

// Returns how many chunks of the tokens a loss takes: as long as the stack has them, or an eighth
// of all (torchtune's CEWithChunkedOutputLoss).
double loss_chunks(const Stack& stack, double tokens) {
  return stack.loss_chunk > 0 ? std::ceil(tokens / stack.loss_chunk) : 8;
}

// Does the same for one chunk of the tokens after the other: logits of all chunks wait as they
// come, unless the head runs chunk by chunk too, and in 32 bits for the backward pass unless a
// compiler casts them on the way, or they have these; everything else is there for one chunk at a
// time. A loop that has a name for them keeps the cast ones.
void loss_in_chunks(Unit& head, const Stack& stack, const Strategy& strategy, double chunks,
                    double logits) {
  const Operators& all = stack.operators;
  const bool uncast = strategy.compiled || strategy.precision.whole(),
             with_head = cross_entropy_of(stack, strategy) == CrossEntropy::head_chunks;
  const double held = stack.holds_logits ? bytes_32 : uncast || with_head ? 0 : bytes_16;
  const LossCost cost = loss_cost(uncast ? CrossEntropy::kernel : CrossEntropy::logits);
  for (std::vector<KernelRow>* rows : {&head.forward, &head.backward})
    for (KernelRow& row : *rows) row.launches = chunks;
  head.forward.push_back(counted(all, cost.run_forward, logits, 1, chunks));
  head.backward.insert(head.backward.begin(), counted(all, cost.run_backward, logits, 1, chunks));
  head.memory.saved += (cost.kept + held) * logits;
  head.memory.forward = cost.forward * logits / chunks;
  head.memory.backward = cost.backward * logits / chunks;
}

Unit final_norm_unit(const Model& model, const Stack& stack, const Strategy& strategy,
                     double tokens) {
  const double h = static_cast<double>(model.hidden);
  Unit norm;
  norm.name = "norm";
  norm.role = Role::final_norm;
  norm.tensors.assign(!model.norm_weights ? 0 : model.norm_bias ? 2 : 1, h);
  norm.owners = model.norm_weights ? 1 : 0;
  norm.plain_modules = model.norm_weights ? 0 : 1;
  norm.kind = TensorClass::norm;
  norm.forward = {norm_row(stack.operators, fusion_for(model, stack, strategy), tokens, h, true)};
  norm.trained = strategy.lora.rank == 0;
  norm.backward = backward_of(norm.forward, stack.operators);
  norm.memory.saved = norm.memory.gradient = bytes_16 * tokens * h;
  return norm;
}

// Adds the cap of logits behind the product, before its loss.
void cap_logits(Unit& head, const Operators& operators, double numbers, double logits) {
  const KernelRow cap = counted(operators, Operator::softcap, logits);
  const std::vector<KernelRow> back = backward_of({cap}, operators);
  head.forward.insert(head.forward.begin() + 1, cap);
  const std::size_t behind = head.loss ? head.loss->backward : 0;
  head.backward.insert(head.backward.begin() + static_cast<std::ptrdiff_t>(behind), back.begin(),
                       back.end());
  head.memory.saved += numbers * logits;
}

// Stores the head as other frozen matrices are; each chunk of tokens unpacks it again.
void pack_head(Unit& head, const Stack& stack, const Strategy& strategy, double weights) {
  if (head.tensors.empty()) return;
  const double chunks = head.forward.front().launches;
  pack(head, stack, strategy, 1);
  hold_unpacked(head, stack, strategy, weights);
  for (std::vector<KernelRow>* rows : {&head.forward, &head.backward})
    for (KernelRow& row : *rows)
      if (row.op == Operator::unpack || row.name == "cast_unpacked") {
        row.launches *= chunks;
        row.bytes *= chunks;
      }
}

}  // namespace

Unit embedding_unit(const Model& model, const Stack& stack, const Strategy& strategy,
                    const Load& load) {
  const double h = static_cast<double>(model.hidden);
  Unit unit;
  unit.name = "embed_tokens";
  unit.role = Role::embedding;
  unit.tensors = {static_cast<double>(model.rows_of_table()) * h};
  if (model.positions == Positions::learned)
    unit.tensors.push_back(static_cast<double>(model.rows_of_positions()) * h);
  const bool segments = model.encoder && model.encoder->segments > 0;
  if (segments) unit.tensors.push_back(static_cast<double>(model.encoder->segments) * h);
  const std::int64_t distances = model.attention.relative;
  if (distances > 0) unit.tensors.push_back(static_cast<double>(distances) * h);
  unit.owners = static_cast<int>(unit.tensors.size());
  unit.kind = TensorClass::embedding;
  const double lookups = segments ? 2 : 1;
  unit.forward = {counted(stack.operators, Operator::embedding, load.tokens, h * lookups)};
  unit.trained = strategy.lora.rank == 0 || strategy.lora.embedding;
  if (unit.trained)
    unit.backward = {counted(stack.operators, Operator::embedding_backward, load.tokens, h)};
  unit.plain_modules = 2;
  const std::size_t of_norm = model.norm_bias ? 2 : 1;
  if (distances > 0) {  // its norm, before each layer takes it
    unit.tensors.insert(unit.tensors.end(), of_norm, h);
    ++unit.owners;
  }
  if (!model.norms_embedding) return unit;
  const KernelRow norm =
      norm_row(stack.operators, fusion_for(model, stack, strategy), load.tokens, h, false);
  const std::vector<KernelRow> back = backward_of({norm}, stack.operators);
  unit.tensors.insert(unit.tensors.end(), of_norm, h);
  ++unit.owners;
  unit.forward.push_back(norm);
  if (unit.trained) unit.backward.insert(unit.backward.begin(), back.begin(), back.end());
  unit.memory.saved = bytes_16 * load.tokens * h;
  return unit;
}

std::vector<Unit> head_units(const Model& model, const Stack& stack, const Strategy& strategy,
                             const Job& job) {
  const double h = static_cast<double>(model.hidden), v = static_cast<double>(model.vocabulary);
  const double t = job.slots() / static_cast<double>(strategy.sequence_parallel.ranks());
  const double numbers = strategy.precision.numbers;
  std::vector<Unit> units;
  if (!model.encoder || model.encoder->final_norm)
    units.push_back(final_norm_unit(model, stack, strategy, t));
  append(units, units_before_head(model, stack, strategy, job, t));
  if (model.head.makes != ModelHead::Makes::words) {
    append(units, task_head_units(model, stack.operators, strategy, job, t));
    return units;
  }
  Unit head;
  head.name = "lm_head";
  head.role = Role::head;
  if (!model.tied_embeddings) head.tensors = {h * v};
  if (model.head_bias) head.tensors.push_back(v);
  head.owners = 1;  // a tied head has the embedding's tensor as a parameter, too
  head.kind = TensorClass::embedding;
  head.forward = {gemm("lm_head", t, h, v)};
  head.memory.saved = head.memory.gradient = numbers * t * h;
  head.trained = strategy.lora.rank == 0 || strategy.lora.head;
  const CrossEntropy kind = cross_entropy_of(stack, strategy);
  // Ranks that gather the logits of each other's part of the vocabulary all have them all.
  const TensorParallel& tensor = strategy.tensor_parallel;
  const double logits =
      t * v * (tensor.gathers_logits ? static_cast<double>(ranks_of_head(tensor)) : 1);
  if (job.compares_answers() && kind == CrossEntropy::fused) {
    loss_of_pairs(head, stack.operators, numbers, static_cast<double>(job.micro_batch), t, v);
    head.memory.saved += numbers * v * h;  // the head's gradient
  } else if (kind == CrossEntropy::fused) {
    // One chunk of logits, and both gradients, which are found in the forward pass already.
    const double chunk = std::exp2(std::ceil(std::log2(std::max(1.0, t / std::ceil(v / h)))));
    head.forward.push_back(
        counted(stack.operators, Operator::cross_entropy_fused, t, v, std::ceil(t / chunk)));
    head.memory.saved += std::min(chunk, t) * v * (numbers + 4) + numbers * v * h;
    head.memory.gradient = 0;
    head.backward = backward_of(head.forward, stack.operators);
  } else if (kind == CrossEntropy::words_32) {
    loss_over_words(head, stack.operators, numbers, t, h, v);
    units.push_back(head);
    return units;
  } else if (kind == CrossEntropy::chunks || kind == CrossEntropy::head_chunks) {
    head.backward = backward_of(head.forward, stack.operators);
    loss_in_chunks(head, stack, strategy, loss_chunks(stack, t), logits);
  } else {
    loss_over_logits(head, stack, strategy, job, logits);
  }
  // Kernels that take the head and the loss together bound logits on the way.
  if (model.caps_logits && kind != CrossEntropy::fused)
    cap_logits(head, stack.operators, numbers, logits);
  if (!head.trained) {
    head.backward = frozen_backward_of(head.forward, stack.operators);
    head.loss.reset();
    if (stack.adapters.packs_head) pack_head(head, stack, strategy, h * v);
  }
  units.push_back(std::move(head));
  return units;
}

void part_from_loss(std::vector<Unit>& head) {
  if (head.empty() || !head.back().loss) return;
  Unit& product = head.back();
  const Unit::Loss part = *product.loss;
  Unit loss;
  loss.name = "loss";
  loss.role = Role::loss;
  const auto first = product.forward.end() - static_cast<std::ptrdiff_t>(part.forward);
  loss.forward.assign(first, product.forward.end());
  product.forward.erase(first, product.forward.end());
  const auto last = product.backward.begin() + static_cast<std::ptrdiff_t>(part.backward);
  loss.backward.assign(product.backward.begin(), last);
  product.backward.erase(product.backward.begin(), last);
  loss.memory.saved = part.saved;
  loss.memory.forward = std::exchange(product.memory.forward, part.logits);
  loss.memory.backward = std::exchange(product.memory.backward, part.gradient);
  loss.memory.piece = std::exchange(product.memory.piece, 0);
  loss.memory.passing = part.passing;
  product.memory.saved -= part.saved;
  // The ranks agree on these over a divided vocabulary.
  std::vector<Transfer>& leave = product.hand.leave;
  const auto sums = std::ranges::stable_partition(
      leave, [](const Transfer& each) { return each.kind != Handover::sum; });
  loss.hand.leave.assign(sums.begin(), sums.end());
  leave.erase(sums.begin(), sums.end());
  product.loss.reset();
  head.push_back(std::move(loss));
}

}  // namespace stepsim
