#include "workloads/layers/task_heads.hpp"

#include "workloads/model/parts.hpp"

namespace stepsim {
namespace {

using Makes = ModelHead::Makes;

// Puts a loss behind what the unit runs.
void add_loss(Unit& unit, const Operators& all, const std::vector<KernelRow>& rows) {
  const std::vector<KernelRow> back = backward_of(rows, all);
  unit.forward.insert(unit.forward.end(), rows.begin(), rows.end());
  unit.backward.insert(unit.backward.begin(), back.begin(), back.end());
}

// Writes the head over the vocabulary that nobody learns from: its logits are cast to 32 bits and
// thrown away.
Unit idle_word_head(const Model& model, const Operators& all, const Strategy& strategy,
                    double tokens) {
  const double h = static_cast<double>(model.hidden), v = static_cast<double>(model.vocabulary);
  Unit head;
  head.name = "lm_head";
  head.role = Role::head;
  if (!model.tied_embeddings) head.tensors = {h * v};
  if (model.head_bias) head.tensors.push_back(v);
  head.owners = 1;
  head.kind = TensorClass::embedding;
  head.trained = strategy.lora.rank == 0;
  head.forward = {gemm("lm_head", tokens, h, v), counted(all, Operator::logits_cast, tokens * v)};
  head.memory.forward = (strategy.precision.numbers + bytes_32) * tokens * v;
  head.memory.piece = bytes_32 * tokens * v;
  return head;
}

// Writes a head of labels with its loss. Decoders run it over all tokens, and the loss looks at the
// last one of each text; encoders run it over their first one. Beside adapters it is trained too.
Unit label_unit(const Model& model, const Operators& all, const Job& job, double tokens) {
  const double h = static_cast<double>(model.hidden),
               labels = static_cast<double>(model.head.labels);
  const double texts = static_cast<double>(job.rows());
  const bool of_tokens = model.head.makes == Makes::labels_of_tokens;
  const double rows = of_tokens || !model.encoder ? tokens : texts;
  Unit score;
  score.name = "score";
  score.role = Role::score;
  score.tensors = {h * labels};
  if (model.head.bias) score.tensors.push_back(labels);
  score.owners = 1;
  score.kind = TensorClass::embedding;
  score.forward = {gemm("score", rows, h, labels)};
  score.backward = backward_of(score.forward, all);
  add_loss(score, all, {counted(all, Operator::label_loss, of_tokens ? tokens : texts, labels)});
  score.memory.saved = bytes_16 * rows * (h + labels);
  score.memory.gradient = bytes_16 * tokens * h;
  return score;
}

// Writes what makes a vector of each text's tokens, and compares each first text with the others of
// all examples at once: the right one is to be the nearest.
Unit compare_unit(const Model& model, const Operators& all, const Job& job, double tokens) {
  const double h = static_cast<double>(model.hidden);
  const double firsts = static_cast<double>(job.micro_batch),
               others = job.compared() * static_cast<double>(job.texts - 1);
  Unit unit;
  unit.name = "compare";
  unit.role = Role::loss;
  unit.plain_modules = 2;
  unit.forward = {gemm("similarities", firsts, h, others)};
  unit.backward = backward_of(unit.forward, all);
  add_loss(unit, all, {counted(all, Operator::label_loss, firsts, others)});
  const KernelRow pooling = counted(all, Operator::pooling, tokens, h);
  const std::vector<KernelRow> back = backward_of({pooling}, all);
  unit.forward.insert(unit.forward.begin(), pooling);
  unit.backward.insert(unit.backward.end(), back.begin(), back.end());
  // Tokens and the mask, both as wide as they are; vectors and similarities in 32 bits.
  unit.memory.saved =
      2 * bytes_16 * tokens * h + bytes_32 * ((firsts + others) * h + 2 * firsts * others);
  unit.memory.gradient = bytes_16 * tokens * h;
  return unit;
}

}  // namespace

std::vector<Unit> units_before_head(const Model& model, const Stack& stack,
                                    const Strategy& strategy, const Job& job, double tokens) {
  std::vector<Unit> units;
  if (!model.encoder) return units;
  const Makes makes = model.head.makes;
  const bool of_tokens = makes == Makes::words || makes == Makes::labels_of_tokens;
  const double rows = of_tokens ? tokens : static_cast<double>(job.rows());
  const double h = static_cast<double>(model.hidden);
  for (const Part& part : outer_parts(model)) {
    const bool dense = part.role == Role::head_dense;
    if (!dense && part.role != Role::head_norm) continue;
    Unit& unit = units.emplace_back();
    unit.name = part.name;
    unit.role = part.role;
    unit.tensors = {static_cast<double>(part.weights())};
    if (part.bias) unit.tensors.push_back(static_cast<double>(part.out));
    unit.owners = 1;
    unit.kind = part.kind;
    unit.trained = strategy.lora.rank == 0;
    if (dense)
      unit.forward = {gemm("linear", rows, h, h),
                      counted(stack.operators, Operator::activation_ungated, rows, h)};
    else
      unit.forward = {counted(stack.operators, Operator::norm_fused, rows, h)};
    // Without a head its result is thrown away.
    if (makes == Makes::nothing) continue;
    unit.backward = unit.trained ? backward_of(unit.forward, stack.operators)
                                 : frozen_backward_of(unit.forward, stack.operators);
    unit.memory.saved = bytes_16 * rows * h * (dense ? 2 : 1);
    unit.memory.gradient = bytes_16 * rows * h;
  }
  return units;
}

std::vector<Unit> task_head_units(const Model& model, const Operators& all,
                                  const Strategy& strategy, const Job& job, double tokens) {
  std::vector<Unit> units;
  if (model.head.has_words()) units.push_back(idle_word_head(model, all, strategy, tokens));
  if (model.head.has_labels())
    units.push_back(label_unit(model, all, job, tokens));
  else
    units.push_back(compare_unit(model, all, job, tokens));
  return units;
}

}  // namespace stepsim
