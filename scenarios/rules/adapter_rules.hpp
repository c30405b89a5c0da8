// These rules say which matrices of a model adapters can stand beside.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/base/config.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

// Returns the matrices of all layers, as the model's own code calls them: "self_attn.q_proj".
std::vector<std::string> matrices_of(const Model& model);

// Notes each name of `modules` that no matrix of any layer has, and adapters that stand beside no
// matrix.
void check_adapters(const Table& strategy, const Scenario& scenario);

}  // namespace stepsim
