#include "workloads/step/model_flops.hpp"

#include "workloads/model/mixers.hpp"
#include "workloads/model/parts.hpp"
#include "workloads/program/visits.hpp"

namespace stepsim {
namespace {

constexpr double training_passes = 3;  // forward, gradient of the input, gradient of the weights

// Returns the weights that one token is multiplied with; of the experts those that it is sent to.
double multiplied(const std::vector<Part>& parts, std::int64_t experts_of_token) {
  double sum = 0;
  for (const Part& part : parts)
    if (part.multiplies())
      sum += static_cast<double>(part.weights() *
                                 (part.kind == TensorClass::expert ? experts_of_token : 1));
  return sum;
}

// Products over patches, which run backward where something is trained.
double tower_flops(const ModelUnits& units, double passes) {
  double sum = 0;
  for (const Visit& visit : visits_of(units))
    if (visit.phase == Phase::forward && visit.layer >= 0 &&
        visit.layer < static_cast<std::int64_t>(units.of_tower))
      for (const KernelRow& row : visit.unit->forward)
        sum += row.flops * (visit.frozen ? 1 : passes);
  return sum;
}

}  // namespace

double multiplied_parameters(const Model& model) {
  double sum = multiplied(outer_parts(model), 1);
  const std::int64_t per_token = model.experts ? model.experts->per_token : 0;
  for (const AlikeLayers& alike : alike_layers(model))
    sum +=
        static_cast<double>(alike.count) * multiplied(layer_parts(model, alike.first), per_token);
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
  const auto scored = static_cast<double>(job.reference_passes() + job.estimating_passes());
  const double of_weights = input.strategy.lora.rank > 0 ? training_passes - 1 : training_passes;
  flops.per_parameter = 2 * (of_weights + scored);
  flops.matrices = flops.per_parameter * tokens * multiplied_parameters(input.model);
  if (input.strategy.lora.rank > 0) {
    const double ranks = static_cast<double>(input.strategy.tensor_parallel.size);
    for (const std::vector<Unit>& layer : units_of(input).layers)
      for (const Unit& unit : layer)
        flops.matrices += training_passes * 2 * tokens *
                          (ranks * unit.trained_elements() - (ranks - 1) * unit.common);
  }
  if (input.model.tower) flops.matrices += tower_flops(units_of(input), training_passes);
  for (std::int64_t layer = 0; layer < input.model.layers; ++layer) {
    const LayerKind kind = kind_of(input.model, layer);
    if (kind.attends())
      flops.attention +=
          (training_passes + scored) * 4 * width * load_of(input.model, job, layer).wanted;
    if (kind.has_mixer())
      flops.attention +=
          (training_passes + scored) * tokens * mixer_flops(*input.model.mixer).forward;
  }
  flops.attention_in_rows = (training_passes + scored) * 4 * width * tokens *
                            static_cast<double>(job.sequence) *
                            static_cast<double>(attention_layers(input.model));
  // This counts one rank's part where several share a model or a sequence; of stages the mean.
  const double micro =
      static_cast<double>(job.accumulation) /
      static_cast<double>(input.strategy.tensor_parallel.size * repeats_of(input.strategy) *
                          input.strategy.pipeline_parallel.size *
                          input.strategy.sequence_parallel.ranks());
  for (double* part : {&flops.matrices, &flops.attention, &flops.attention_in_rows}) *part *= micro;
  return flops;
}

}  // namespace stepsim
