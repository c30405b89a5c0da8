// Plays a program by SimGrid. It is a module of its own, so that only what replays by SimGrid loads
// that library.
#pragma once

#include <span>
#include <string>

#include "sim/engine/own/replay.hpp"
#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// Plays a program by SimGrid, once per process: SimGrid keeps its clock and its callbacks for the
// life of the process. A second call throws std::logic_error. `settings` are lines of SimGrid's
// configuration, KEY:VALUE; an unknown key or a bad value is a UserError. With `draws` SimGrid's
// plugins meter what the replay takes.
Trace simgrid_replay(const Platform& platform, const OpGraph& graph, Watched watched,
                     std::span<const std::string> settings = {}, const Draws* draws = nullptr);

// dlsym finds the module's entry, a function of this type, by this name.
using SimGridEntry = void (*)(const Platform&, const OpGraph&, Watched,
                              std::span<const std::string>, const Draws*, Trace&);
inline constexpr const char* simgrid_entry_name = "stepsim_simgrid_replay";

}  // namespace stepsim
