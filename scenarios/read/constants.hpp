// Constants of the cluster and the stack that a scenario, or the command line, sets to a value of
// its own.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sim/base/config.hpp"

namespace stepsim {

// Returns whether the key names a constant of the catalogue, and no key of a scenario:
// "cluster.xgmi.bandwidth", "gpu.gemm.rate", "stack.host.sync", "engine.sync.call".
bool names_constant(std::string_view key);

// Returns what the mapping sets, each in the unit of its constant; what is wrong is noted at its
// line, with the nearest name where no constant or several fit.
std::vector<GivenConstant> given_constants(const Table& table, std::span<const NamedConstant> all);

}  // namespace stepsim
