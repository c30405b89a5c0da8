// Dice make programs and platforms without any order.
#pragma once

#include <cstdint>

#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
#include "tests/support/dice.hpp"

namespace stepsim {

// Makes devices of different speed, which collectives slow, and engines which compute slows.
Platform uneven_platform(Dice& dice);
// Lets links and devices change from any moment on, for a while or for good, once or over and over.
void let_change(Platform& platform, Dice& dice);

// Makes a program for that platform.
OpGraph any_program(Dice& dice, std::uint32_t size);
void add_neighbours(OpGraph& graph, Dice& dice);
// Returns the same operations on more streams, each of which computes one thing after the other as
// streams do. Computations stream more or less, and some collectives become work of the host.
OpGraph in_streams(const OpGraph& graph, Dice& dice);

}  // namespace stepsim
