// An observation is what somebody observed, or expected, of a run: figures that a prediction can be
// held against.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/config.hpp"
#include "workloads/strategy/stack.hpp"

namespace stepsim {

enum class Metric : std::uint8_t {
  step_time,
  wall,
  epoch_time,
  iterations_per_second,
  tokens_per_second_per_gpu,
  memory,
  state_memory,
  training_time,
  sync_time,
  energy,
  job_energy,
};
struct MetricSpec {
  std::string_view name;  // as a scenario file writes it
  Dimension dimension{};
};
inline constexpr std::array<MetricSpec, 11> metric_specs{{
    {"step_time", Dimension::seconds},  // one optimizer step
    {"wall", Dimension::seconds},       // the whole run
    {"epoch_time", Dimension::seconds},
    {"iterations_per_second", Dimension::ratio},  // micro-batches, as a bare loop counts them
    {"tokens_per_second_per_gpu", Dimension::ratio},
    {"memory", Dimension::bytes},           // of a device, at its peak
    {"state_memory", Dimension::bytes},     // of it parameters, gradients and optimizer
    {"training_time", Dimension::seconds},  // of a GRPO step
    {"sync_time", Dimension::seconds},      // of a GRPO step: weights to the engines
    {"energy", Dimension::joules},          // one optimizer step: GPUs, hosts and the network
    {"job_energy", Dimension::joules},      // the whole run
}};
constexpr const MetricSpec& spec_of(Metric metric) {
  return metric_specs[static_cast<std::size_t>(metric)];
}

// One figure has equal ends.
struct Range {
  double low = 0, high = 0;
};

// Returns the part of `value` that no value inside the range explains, over the nearer end; signed.
double error_against(const Range& range, double value);

struct Observation {
  std::array<std::optional<Range>, metric_specs.size()> figures;  // [Metric]
  std::optional<MemoryKind> memory_counts;                        // what `memory` counts, if known
  std::array<std::optional<double>, metric_specs.size()> bands;   // [Metric]: error that is allowed
  std::optional<bool> fits;                                       // the verdict, where it is stated
  std::string source, note;

  const std::optional<Range>& of(Metric metric) const {
    return figures[static_cast<std::size_t>(metric)];
  }
};

Observation read_observation(const Table& table);

}  // namespace stepsim
