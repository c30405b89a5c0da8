// Which matrices of a model adapters can stand beside.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/base/config.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

// Those of all layers, as the model's own code calls them: "self_attn.q_proj".
std::vector<std::string> matrices_of(const Model& model);

// Each name of `modules` is that of a matrix in one of the layers at least, and some matrix gets an
// adapter.
void check_adapters(const Table& strategy, const Scenario& scenario);

}  // namespace stepsim
