#include "scenarios/read/run_length.hpp"

#include <algorithm>
#include <cmath>

#include "scenarios/scenario.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

// A step with fewer micro-batches than the others is a step.
double steps_of(double iterations, double accumulation) {
  return std::max(1.0, std::ceil(iterations / accumulation));
}

}  // namespace

std::optional<RunLength> run_length(const Job& job, std::uint32_t ranks) {
  const double accumulation = static_cast<double>(job.accumulation);
  const double micro = static_cast<double>(job.micro_batch);
  const double tokens_per_step = job.slots() * job.fill * accumulation * ranks;
  RunLength length;
  length.effective_batch = micro * accumulation * ranks;
  length.epochs = job.epochs;
  if (job.samples > 0) {
    // Whole batches are dealt out to the ranks, the last round filled up.
    const double per_epoch = std::ceil(std::ceil(job.samples / micro) / ranks);
    length.iterations_per_epoch = per_epoch;
    length.iterations = per_epoch * job.epochs;
    length.optimizer_steps = std::ceil(steps_of(per_epoch, accumulation) * job.epochs);
  } else if (job.iterations > 0) {
    length.iterations = job.iterations;
    length.optimizer_steps = steps_of(job.iterations, accumulation);
  } else {
    length.optimizer_steps =
        job.tokens > 0 ? std::ceil(job.tokens / tokens_per_step) : job.optimizer_steps;
    length.iterations = length.optimizer_steps * accumulation;
  }
  if (length.optimizer_steps <= 0) return std::nullopt;
  length.tokens = length.iterations / accumulation * tokens_per_step;
  return length;
}

std::optional<RunLength> run_length(const Scenario& scenario) {
  return run_length(scenario.job, mesh_of(scenario.strategy, scenario.cluster).data());
}

double saves_of(const Job& job, double optimizer_steps) {
  if (job.save.every <= 0) return 0;
  return std::ceil(optimizer_steps / job.save.every) -
         std::floor(job.resume.after / job.save.every);
}

double skipped_iterations(const Job& job, const std::optional<RunLength>& length) {
  const double seen = job.resume.after * static_cast<double>(job.accumulation);
  if (!length || length->iterations_per_epoch <= 0) return seen;
  // The last step of an epoch may have fewer micro-batches than the others.
  const double steps =
      steps_of(length->iterations_per_epoch, static_cast<double>(job.accumulation));
  const double into = job.resume.after - steps * std::floor(job.resume.after / steps);
  return into * static_cast<double>(job.accumulation);
}

}  // namespace stepsim
