#include "sim/engine/player.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/machine_error.hpp"
#include "sim/engine/simgrid/simgrid_replay.hpp"
#include "sim/process/simgrid_module.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {
namespace {

// Times of both engines agree to a billionth, and to less than a picosecond where they are short.
constexpr double agreed_share = 1e-9, agreed_seconds = 1e-12;

// The time that SimGrid takes for what it handles: for each end of a flow it looks at all that are
// under way. Measured over the catalogue with SimGrid 3.32 on one core of a Xeon.
constexpr double seconds_of_activity = 3e-6, seconds_of_encounter = 8e-9;
// What takes longer is played by the own engine alone, unless SimGrid is asked for by name.
constexpr double too_long = 10;  // s

bool agree(double one, double other) {
  return std::abs(one - other) <= std::max(agreed_share * std::abs(one), agreed_seconds);
}

SimGridEntry simgrid_entry() {
  try {
    return reinterpret_cast<SimGridEntry>(simgrid_function(simgrid_entry_name));
  } catch (const MachineError& error) {
    throw MachineError(fmt::format("{}; --engine own answers without it", error.what()));
  }
}

double seconds_by_simgrid(const Trace& own) {
  return seconds_of_activity * static_cast<double>(own.activities) +
         seconds_of_encounter * static_cast<double>(own.encounters);
}

// Whoever replays a second time will replay more often: children of this process have SimGrid then.
void load_before_second() {
  static int replays = 0;
  if (++replays == 2) load_simgrid();
}

Trace played_by_simgrid(const Platform& platform, const OpGraph& graph, Watched watched,
                        const std::vector<std::string>& settings) {
  load_before_second();
  try {
    return in_fresh_child([&] {
      Trace trace;
      simgrid_entry()(platform, graph, watched, settings, trace);
      return trace;
    });
  } catch (const UserError&) {
    throw;
  } catch (const MachineError&) {
    throw;
  } catch (const std::runtime_error& error) {  // SimGrid ends the process on some bad values
    if (settings.empty()) throw;
    throw UserError(
        fmt::format("--cfg: SimGrid gave up with {}: {}", fmt::join(settings, ", "), error.what()));
  }
}

// The operation whose start or end differs most between two traces of one program.
std::string furthest(const OpGraph& graph, const Trace& one, const Trace& other) {
  double most = 0;
  std::string text = "all times of operations are equal to the last bit";
  for (const auto& [name, column] :
       {std::pair{"start", &Trace::start}, std::pair{"end", &Trace::finish}})
    for (std::size_t i = 0; i < (one.*column).size(); ++i) {
      const double apart = std::abs((one.*column)[i] - (other.*column)[i]);
      if (apart <= most) continue;
      most = apart;
      const Op& op = graph.ops()[i];
      text = fmt::format("they differ most at the {} of operation {} ({}), by {:.1e} s", name, i,
                         graph.names()[index(op.name)], apart);
    }
  return text;
}

}  // namespace

Player::Player(EngineChoice choice, std::vector<std::string> settings)
    : choice_(choice), settings_(std::move(settings)) {}

Trace Player::play(const Platform& platform, const OpGraph& graph, Watched watched) const {
  Trace own = replay(platform, graph, watched);
  if (choice_ == EngineChoice::own) return own;
  if (const double seconds = seconds_by_simgrid(own);
      choice_ == EngineChoice::automatic && seconds > too_long) {
    own.by.simgrid_would_take = seconds;
    return own;
  }
  Trace trace = played_by_simgrid(platform, graph, watched, settings_);
  const double here = own.makespan.value, there = trace.makespan.value;
  if (settings_.empty() && !agree(here, there))
    throw std::logic_error(
        fmt::format("the engines disagree: SimGrid {} finds {:.12g} s, the own engine {:.12g} s; "
                    "--engine own answers without SimGrid",
                    trace.by.version, there, here));
  trace.by.difference = there > 0 ? std::abs(here - there) / there : 0;
  if (choice_ == EngineChoice::both) trace.by.furthest = furthest(graph, trace, own);
  return trace;
}

std::string to_text(const PlayedBy& by) {
  if (by.engine == EngineKind::own)
    return by.simgrid_would_take > 0
               ? fmt::format(
                     "played by the engine of our own: SimGrid would take about {} for it "
                     "(--engine simgrid)",
                     to_text(Seconds{by.simgrid_would_take}))
               : "played by the engine of our own";
  std::string text = "played by " + name_of(by);
  if (by.difference)
    text += *by.difference > 0
                ? fmt::format("; the engine of our own finds the same to {:.0e}", *by.difference)
                : "; the engine of our own finds the same";
  if (!by.furthest.empty()) text += "; " + by.furthest;
  return text;
}

void load_simgrid() {
  simgrid_entry();
}

}  // namespace stepsim
