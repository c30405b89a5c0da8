// A Player chooses the engine that plays a program, and compares two of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/own/replay.hpp"
#include "sim/op_graph.hpp"
#include "sim/platform.hpp"
#include "sim/trace.hpp"

namespace stepsim {

// `automatic` is SimGrid unless that would take too long. `both` compares whole traces, and says
// where they differ most.
enum class EngineChoice : std::uint8_t { automatic, own, simgrid, both };
inline constexpr std::array<std::string_view, 4> engine_choice_names{"auto", "own", "simgrid",
                                                                     "both"};

// Studies hold it by value and hand it down to each replay whose times are printed. Whatever is
// replayed by the dozen uses the default, the own engine alone.
class Player {
 public:
  Player() = default;
  // `settings` are lines of SimGrid's configuration, KEY:VALUE. With any, its times may differ.
  explicit Player(EngineChoice choice, std::vector<std::string> settings = {});

  // Plays the program. A replay by SimGrid runs in a process of its own, and the own engine plays
  // beside it: where the makespans, or under `both` any times, differ by more than a billionth of
  // the makespan, throws std::logic_error. Throws MachineError where SimGrid cannot be loaded or is
  // ended. With `draws` a replay by SimGrid is metered.
  Trace play(const Platform& platform, const OpGraph& graph, Watched watched = Watched::everything,
             const Draws* draws = nullptr) const;

  // Holds the meters of such a trace, if it has any, against what the integral over it says. Throws
  // std::logic_error where they differ by more than a billionth.
  void compare_energy(Trace& trace, const Meters& integral) const;

  // Returns the player for replays that an answer needs beside the one that it states: the own
  // engine, unless another was asked for by name.
  Player for_more() const;

  // An answer of one player is not that of another one.
  friend bool operator==(const Player&, const Player&) = default;

 private:
  EngineChoice choice_ = EngineChoice::own;
  std::vector<std::string> settings_;
};

// Writes the last line of a text: "SimGrid 3.32; the engine of our own finds the same to 2e-16".
std::string to_text(const PlayedBy& by);

// Loads SimGrid into this process, for those that it starts. A server does so before it shuts
// itself in; all others load it in the process that replays.
void load_simgrid();

}  // namespace stepsim
