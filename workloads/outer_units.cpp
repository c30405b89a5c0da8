#include <algorithm>
#include <cmath>

#include "workloads/units.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

}  // namespace

Unit embedding_unit(const Model& model, const Strategy& strategy, const Load& load) {
  const double h = static_cast<double>(model.hidden);
  Unit unit;
  unit.name = "embed_tokens";
  unit.tensors = {static_cast<double>(model.vocabulary) * h};
  if (model.positions == Positions::learned)
    unit.tensors.push_back(static_cast<double>(model.longest_sequence) * h);
  unit.owners = static_cast<int>(unit.tensors.size());
  unit.kind = TensorClass::embedding;
  unit.forward = {memory("embedding", 2 * half * load.tokens * h, 1)};
  unit.trained = strategy.lora.rank == 0;
  if (unit.trained) unit.backward = {memory("embedding", 3 * half * load.tokens * h, 2)};
  unit.plain_modules = 2;
  return unit;
}

std::vector<Unit> head_units(const Model& model, const Stack& stack, const Strategy& strategy,
                             const Job& job) {
  const double h = static_cast<double>(model.hidden), v = static_cast<double>(model.vocabulary);
  const double t = job.slots() / static_cast<double>(strategy.sequence_parallel.ranks());
  const Stack::Fusion fused = fusion_of(stack, strategy);
  Unit norm;
  norm.name = "norm";
  norm.tensors.assign(model.norm_bias ? 2 : 1, h);
  norm.owners = 1;
  norm.kind = TensorClass::norm;
  norm.forward = {norm_row(fused, t, h, true)};
  norm.trained = strategy.lora.rank == 0;
  norm.backward = backward_of(norm.forward);
  norm.saved_bytes = norm.gradient_bytes = half * t * h;
  Unit head;
  head.name = "lm_head";
  if (!model.tied_embeddings) head.tensors = {h * v};
  head.owners = model.tied_embeddings ? 0 : 1;
  head.plain_modules = 1 - head.owners;
  head.kind = TensorClass::embedding;
  head.forward = {gemm("lm_head", t, h, v)};
  const double chunk = std::exp2(std::ceil(std::log2(std::max(1.0, t / std::ceil(v / h)))));
  if (job.method == Method::dpo) {
    // Preferences need the probability of every token: the logarithmic softmax of the logits, row
    // by row, stays for the backward pass. A fused loss does not help.
    head.forward.push_back(
        memory("log_softmax", 3 * half * t * v, static_cast<double>(job.rows())));
    head.saved_bytes = half * t * v + half * t * h;
    head.gradient_bytes = half * t * v + half * t * h;
    head.forward_bytes = half * t * v;
  } else if (fused.cross_entropy) {
    head.forward.push_back(memory("cross_entropy", 3 * half * t * v, std::ceil(t / chunk)));
    // One chunk of logits, and both gradients, which are found in the forward pass already.
    head.saved_bytes = std::min(chunk, t) * v * (half + 4) + half * t * h + half * v * h;
  } else if (strategy.compiled) {
    // Read for the largest and the sum at once, and again for the gradient that takes their place.
    head.forward.push_back(memory("cross_entropy", half * t * v, 1));
    head.saved_bytes = 2 * half * t * v + half * t * h;
  } else {
    // Logits in 16 bits, a copy in 32, softmax and its gradient.
    head.forward.push_back(memory("cross_entropy", (half + 4 + 4 + 4) * t * v, 6));
    head.saved_bytes = (half + 4 + 4) * t * v;
    head.gradient_bytes = half * t * v + half * t * h;
  }
  head.trained = norm.trained;
  head.backward = head.trained ? backward_of(head.forward) : frozen_backward_of(head.forward);
  return {norm, head};
}

}  // namespace stepsim
