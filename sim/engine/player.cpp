#include "sim/engine/player.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/engine/simgrid/simgrid_replay.hpp"
#include "sim/process/simgrid_module.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {
namespace {

// Times of both engines agree to a billionth, and to less than a picosecond where they are short.
constexpr double agreed_share = 1e-9, agreed_seconds = 1e-12;

// SimGrid takes its time for each thing that it handles, and for each end of a flow it looks at all
// flows that are under way. tests/bench/engines_bench.cpp fits both to 119 steps and exchanges: on
// one core of an EPYC, SimGrid 3.32 takes nine in ten of them within 41 %.
constexpr double seconds_of_activity = 1e-6, seconds_of_encounter = 1.6e-8;
// A program that would take SimGrid longer is played by the own engine alone, unless SimGrid is
// asked for by name.
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

// Loads SimGrid into this process at its second replay, since whoever replays a second time will
// replay more often: its children then have SimGrid from the start.
void load_before_second() {
  static int replays = 0;
  if (++replays == 2) load_simgrid();
}

Trace played_by_simgrid(const Platform& platform, const OpGraph& graph, Watched watched,
                        const std::vector<std::string>& settings, const Draws* draws) {
  load_before_second();
  try {
    return in_fresh_child([&] {
      Trace trace;
      simgrid_entry()(platform, graph, watched, settings, draws, trace);
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

// Furthest keeps where two traces of one program differ most.
struct Furthest {
  double apart = 0;  // s, or seconds' worth of bytes
  std::string text = "all times are equal to the last bit";

  void see(double one, double other, const std::function<std::string()>& place) {
    if (std::abs(one - other) <= apart) return;
    apart = std::abs(one - other);
    text = fmt::format("they differ most {}, by {:.1e} s", place(), apart);
  }
};

Furthest furthest(const Platform& platform, const OpGraph& graph, const Trace& one,
                  const Trace& other) {
  Furthest most;
  for (const auto& [name, column] :
       {std::pair{"start", &Trace::start}, std::pair{"end", &Trace::finish}})
    for (std::size_t i = 0; i < (one.*column).size(); ++i)
      most.see((one.*column)[i], (other.*column)[i], [&] {
        return fmt::format("at the {} of operation {} ({})", name, i,
                           graph.names()[index(graph.ops()[i].name)]);
      });
  for (std::size_t i = 0; i < one.links.size(); ++i) {
    const Link& link = platform.links[i];
    const auto place = [&] { return fmt::format("on link {}", link.name); };
    most.see(one.links[i].busy.value, other.links[i].busy.value, place);
    most.see(one.links[i].bytes / link.capacity.value, other.links[i].bytes / link.capacity.value,
             place);
  }
  return most;
}

// MostApart is where meters and integrals of energy differ most, as a share of what a device draws.
struct MostApart {
  double share = 0, metered = 0, integral = 0;  // J
  std::string place{};

  void see(const std::vector<double>& meters, const std::vector<double>& integrals,
           std::string_view what) {
    for (std::size_t i = 0; i < meters.size(); ++i) {
      const double there = meters[i], here = integrals.at(i);
      const double apart =
          std::abs(there - here) / std::max({std::abs(there), std::abs(here), 1e-300});
      if (apart > share) *this = {apart, there, here, fmt::format("{} {}", what, i)};
    }
  }
};

MostApart most_apart(const Meters& meters, const Meters& integrals) {
  MostApart most;
  most.see(meters.gpus, integrals.gpus, "GPU");
  most.see(meters.hosts, integrals.hosts, "the host of GPU");
  most.see(meters.network, integrals.network, "the network of GPU");
  most.see(meters.links, integrals.links, "link");
  return most;
}

[[noreturn]] void disagree(const PlayedBy& by, const std::string& how) {
  throw std::logic_error(fmt::format(
      "SimGrid {} and the engine of our own disagree: {}; --engine own answers without SimGrid",
      by.version, how));
}

}  // namespace

Player::Player(EngineChoice choice, std::vector<std::string> settings)
    : choice_(choice), settings_(std::move(settings)) {}

Player Player::for_more() const {
  return choice_ == EngineChoice::automatic ? Player() : *this;
}

Trace Player::play(const Platform& platform, const OpGraph& graph, Watched watched,
                   const Draws* draws) const {
  Trace own = replay(platform, graph, watched);
  own.by.own = 1;
  if (choice_ == EngineChoice::own) return own;
  if (const double seconds = seconds_by_simgrid(own);
      choice_ == EngineChoice::automatic && seconds > too_long) {
    own.by.simgrid_would_take = seconds;
    return own;
  }
  Trace trace = played_by_simgrid(platform, graph, watched, settings_, draws);
  const double here = own.makespan.value, there = trace.makespan.value;
  if (settings_.empty() && !agree(here, there))
    disagree(trace.by, fmt::format("{:.12g} s and {:.12g} s", there, here));
  trace.by.difference = there > 0 ? std::abs(here - there) / there : 0;
  if (choice_ == EngineChoice::both) {
    const Furthest most = furthest(platform, graph, trace, own);
    if (settings_.empty() && !agree(there, there + most.apart)) disagree(trace.by, most.text);
    trace.by.furthest = most.text;
  }
  return trace;
}

void Player::compare_energy(Trace& trace, const Meters& integral) const {
  if (trace.meters.gpus.empty()) return;
  const MostApart most = most_apart(trace.meters, integral);
  if (settings_.empty() && most.share > agreed_share)
    disagree(trace.by, fmt::format("its meters read {:.12g} J of {}, where the integral over the "
                                   "trace is {:.12g} J",
                                   most.metered, most.place, most.integral));
  trace.by.energy_difference = most.share;
}

std::string to_text(const PlayedBy& by) {
  const std::string rest =
      by.simgrid_would_take > 0
          ? fmt::format(": SimGrid would take about {} for it (--engine simgrid)",
                        to_text(Seconds{by.simgrid_would_take}))
          : "";
  if (by.simgrid == 0) return "played by the engine of our own" + rest;
  std::string text = "played by " + name_of(by) + rest;
  if (by.difference)
    text += *by.difference > 0
                ? fmt::format("; the engine of our own finds the same to {:.0e}", *by.difference)
                : "; the engine of our own finds the same";
  if (by.own > 0) text += fmt::format("; {} more replays by it alone", by.own);
  if (by.energy_difference)
    text += *by.energy_difference > 0
                ? fmt::format("; SimGrid's plugins find the same energy to {:.0e}",
                              *by.energy_difference)
                : "; SimGrid's plugins find the same energy";
  if (!by.furthest.empty()) text += "; " + by.furthest;
  return text;
}

void load_simgrid() {
  simgrid_entry();
}

}  // namespace stepsim
