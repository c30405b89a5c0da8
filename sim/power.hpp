// This says what the device of a rank draws, and what operations add to that.
// At every moment of a run a device draws `idle`. What runs on it then adds to that:
//   a computation   (1 - s) (compute - idle) + s (memory - idle), s being its Op::streaming / 32;
//   collectives     communication - idle, all that run together, from their start to their finish;
// and never more in all than limit - idle: what is beyond shrinks all additions by one factor.
// Boards are seen to draw more while a collective runs beside products, and to stay at their limit.
// Transfers, delays and the launching thread add nothing. An operation of kind `cpu` adds `cores`
// to its rank's part of the node, however many run. Beside that a rank draws `host` and `network`
// at every moment. A replayed rank draws for each rank that it stands for, and a stretch that was
// replayed once for many times counts as often.
// All of it is a finite number of states of a device, so that an engine can integrate it as well.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

namespace stepsim {

// A computation's time has so many parts; Op::streaming counts those in which memory binds.
inline constexpr int streaming_parts = 32;

struct RankPower {  // W
  double idle = 0, memory = 0, compute = 0, communication = 0;
  double limit = 0;    // of the board
  double host = 0;     // the rank's part of its node
  double cores = 0;    // more, while the rank updates on the host
  double network = 0;  // the rank's part of what joins the nodes

  double standing() const { return idle + host + network; }
  // Returns what so many computations add, when `streaming` is the sum of their streaming parts.
  double of_compute(int computations, int streaming) const {
    return computations * (compute - idle) -
           (compute - memory) * streaming / static_cast<double>(streaming_parts);
  }
  double of_collectives() const { return communication - idle; }
  // Returns the share of `added` that the limit leaves.
  double kept(double added) const {
    const double most = std::max(0.0, limit - idle);
    return added > most ? most / added : 1;
  }
  // Returns the power of the device while so many computations and any or no collectives run on it.
  double of_device(int computations, int streaming, bool collectives) const {
    const double added =
        of_compute(computations, streaming) + (collectives ? of_collectives() : 0.0);
    return idle + kept(added) * added;
  }
};

// A link draws `idle` at every moment, and up to `busy` by the share of its capacity that flows
// use.
struct LinkPower {  // W
  double idle = 0, busy = 0;
};

// Draws says what an engine is asked to meter while it plays.
struct Draws {
  RankPower rank{};                // of every rank
  std::vector<LinkPower> links{};  // [link]; empty: no link draws anything by itself
};

// Meters hold the J of what was played: a lane counts for one rank, and a stretch is there once.
struct Meters {
  std::vector<double> gpus{}, hosts{}, network{};  // [rank]
  std::vector<double> links{};                     // [link]

  static auto fields(auto& self) {
    return std::tie(self.gpus, self.hosts, self.network, self.links);
  }
};

}  // namespace stepsim
