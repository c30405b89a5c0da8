// These schedules run rings, one per rail.
#pragma once

#include "workloads/collectives/collectives.hpp"

namespace stepsim {

Schedule ring_schedule(const Cluster&, Collective, std::span<const Rank>, Detail);

}  // namespace stepsim
