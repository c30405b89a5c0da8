// Which matrices of a model adapters can stand beside.
#pragma once

#include <string>
#include <vector>

#include "sim/base/config.hpp"
#include "workloads/model/model.hpp"
#include "workloads/strategy/lora.hpp"

namespace stepsim {

// Those of all layers, as the model's own code calls them: "self_attn.q_proj".
std::vector<std::string> matrices_of(const Model& model);

// Each name of `modules` is that of a matrix in one of the layers at least.
void check_adapters(const Table& strategy, const Lora& lora, const Model& model);

}  // namespace stepsim
