// Platforms and operations of one line, for tests of the engine.
#pragma once

#include <initializer_list>
#include <vector>

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

// Links of these capacities in B/s, and devices of full speed that nothing slows.
Platform tiny_platform(std::initializer_list<double> capacities, std::size_t devices = 1);

Flow flow_over(std::initializer_list<std::uint32_t> links, double share = 1);
Pattern one_round(double latency, std::vector<Flow> flows, std::vector<Rank> members = {0});

Op compute_op(Rank rank, double seconds);
Op host_op(Rank rank, double seconds);
Op delay_op(Rank rank, double seconds);
Op join_op(Rank rank = 0);
Op traffic_op(PatternId pattern, double bytes, OpKind kind = OpKind::collective);

}  // namespace stepsim
