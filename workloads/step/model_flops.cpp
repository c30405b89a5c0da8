#include "workloads/step/model_flops.hpp"

#include <array>

#include "workloads/model/parts.hpp"
#include "workloads/program/visits.hpp"

namespace stepsim {
namespace {

constexpr double passes = 3;  // forward, gradient of the input, gradient of the weights

// What one token is multiplied with; of the experts those that it is sent to.
double multiplied(const std::vector<Part>& parts, std::int64_t experts_of_token) {
  double sum = 0;
  for (const Part& part : parts)
    if (part.multiplies())
      sum += static_cast<double>(part.weights() *
                                 (part.kind == TensorClass::expert ? experts_of_token : 1));
  return sum;
}

}  // namespace

double multiplied_parameters(const Model& model) {
  double sum = multiplied(outer_parts(model), 1);
  const std::int64_t per_token = model.experts ? model.experts->per_token : 0;
  std::array<double, 2> kinds{-1, -1};  // all layers with experts are alike, and all without
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    double& one = kinds[has_experts(model, layer) ? 1 : 0];
    if (one < 0) one = multiplied(layer_parts(model, layer), per_token);
    sum += one;
  }
  return sum;
}

ModelFlops model_flops(const StepInput& input) {
  const Job& job = input.job;
  const double tokens = job.slots() * job.fill;
  const AttentionWidths widths = widths_of(input.model.attention);
  const double width = static_cast<double>(widths.queries + widths.result) / 2;
  ModelFlops flops;
  // A reference model goes forward once more; with adapters it is the model without them. Frozen
  // weights have no gradient of their own; adapters have.
  const double scored = job.has_reference() ? 1 : 0;
  const double of_weights = input.strategy.lora.rank > 0 ? passes - 1 : passes;
  flops.per_parameter = 2 * (of_weights + scored);
  flops.matrices = flops.per_parameter * tokens * multiplied_parameters(input.model);
  if (input.strategy.lora.rank > 0) {
    const double ranks = static_cast<double>(input.strategy.tensor_parallel.size);
    for (const std::vector<Unit>& layer : units_of(input).layers)
      for (const Unit& unit : layer)
        flops.matrices +=
            passes * 2 * tokens * (ranks * unit.trained_elements() - (ranks - 1) * unit.common);
  }
  for (std::int64_t layer = 0; layer < input.model.layers; ++layer)
    flops.attention += (passes + scored) * 4 * width * load_of(input.model, job, layer).wanted;
  flops.attention_in_rows = (passes + scored) * 4 * width * tokens *
                            static_cast<double>(job.sequence) *
                            static_cast<double>(input.model.layers);
  // Of one rank's part where several share a model or a sequence; of stages the mean.
  const double micro =
      static_cast<double>(job.accumulation) /
      static_cast<double>(input.strategy.tensor_parallel.size * repeats_of(input.strategy) *
                          input.strategy.pipeline_parallel.size *
                          input.strategy.sequence_parallel.ranks());
  for (double* part : {&flops.matrices, &flops.attention, &flops.attention_in_rows}) *part *= micro;
  return flops;
}

}  // namespace stepsim
