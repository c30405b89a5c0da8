// A way of sharding has to say when parameters are gathered and gradients reduced, what a rank
// holds between steps, how it came there, and what is saved of it. Each scheme is a folder of this
// room; schemes.hpp has the list.
#pragma once

#include <concepts>
#include <optional>
#include <vector>

#include "workloads/program/step_writer.hpp"
#include "workloads/sharding/resident.hpp"
#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/sharding/setup.hpp"

namespace stepsim {

// Writes what the scheme does around the kernels of a step.
template <class S>
concept StepSchedule = std::constructible_from<S, StepWriter&, const std::vector<Visit>&> &&
                       requires(S schedule, std::size_t visit, bool last_micro_batch) {
                         schedule.before(visit);
                         schedule.after(visit, last_micro_batch);
                         schedule.finish_backward(last_micro_batch);
                         schedule.step();
                       };

// One that pipeline stages can have: its step comes in two, around the norm of all gradients that
// all ranks agree on.
template <class S>
concept StagedSchedule = StepSchedule<S> && requires(S schedule, std::optional<Mark> norm) {
  { schedule.own_norm() } -> std::same_as<Mark>;
  schedule.finish_step(norm);
};

template <class S>
concept Scheme = StepSchedule<typename S::Schedule> &&
                 requires(const Strategy& strategy, const StepInput& input, const Unit& unit,
                          const RankPart& rank, Holdings& holdings, Setup& setup) {
                   { S::facts(strategy) } -> std::same_as<SchemeFacts>;
                   // Returns what runs behind each backward pass of a trained unit, for its
                   // gradients.
                   { S::gradient_kernels(input, unit) } -> std::same_as<std::vector<KernelRow>>;
                   // Lists what is held between steps.
                   S::hold(holdings, rank);
                   // Writes the way from nothing to what is held.
                   S::set_up(setup);
                   // Bytes of gradients on the device beside that when an update begins.
                   { S::gradients_at_update(rank) } -> std::same_as<double>;
                 };

}  // namespace stepsim
