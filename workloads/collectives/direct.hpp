// In a direct exchange every rank sends to every other at once.
#pragma once

#include "workloads/collectives/collectives.hpp"

namespace stepsim {

Schedule direct_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);

}  // namespace stepsim
