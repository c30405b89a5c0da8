// This writes what a rank does for one call of a unit, whoever shards its parameters.
#pragma once

#include "workloads/program/step_writer.hpp"

namespace stepsim {

// A visit runs all of a backward pass, or what makes gradients of inputs, or the weights' alone.
enum class PartOfVisit : std::uint8_t { all, inputs, weights };
bool waits_for_weights(const Visit& visit);  // its backward pass has these two parts

// Its kernels, what the host waits for, and the exchange of tokens around it.
Mark run_visit(StepWriter& writer, const Visit& visit, PartOfVisit part = PartOfVisit::all);

// These do the same piece by piece. Backward, gradients of weights may wait until tokens are on
// their way.
bool sends_before(const Visit& visit);
bool sends_behind(const Visit& visit);
void send_tokens(StepWriter& writer, const Unit& unit);
Mark run_between(StepWriter& writer, const Visit& visit, PartOfVisit part);

// These return the host's time in each pass: for what the modules themselves do, and for what it
// does beside operators to route tokens and to send them to their experts, half of it before it
// learns how many come.
Seconds module_calls(const StepInput& input, const Visit& visit);
Seconds dispatcher_calls(const StepInput& input, const Unit& unit);

// Sums up the gradients of norms behind the last backward pass, where ranks divide tokens between
// blocks.
void sum_norms(StepWriter& writer, const std::vector<Visit>& visits);

}  // namespace stepsim
