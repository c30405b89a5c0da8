#include "analysis/energy.hpp"

#include <bit>
#include <numeric>

#include "analysis/rank_sweep.hpp"

namespace stepsim {
namespace {

double& of(ByDrawer<double>& energy, Drawer drawer) {
  return energy[static_cast<std::size_t>(drawer)];
}
double of(const ByDrawer<double>& energy, Drawer drawer) {
  return energy[static_cast<std::size_t>(drawer)];
}

// Adding counts the operations of a rank that add to what it draws.
struct Adding {
  AtWork computations, collectives, updates;
  ByCause<int> streaming{};
  int all_collectives = 0, all_updates = 0;

  void change(const RankEdge& edge) {
    if (edge.kind == OpKind::compute) {
      computations.change(edge.cause, edge.step);
      streaming[edge.cause] += edge.step * edge.streaming;
    } else if (edge.kind == OpKind::collective) {
      collectives.change(edge.cause, edge.step);
      all_collectives += edge.step;
    } else if (edge.kind == OpKind::cpu) {
      updates.change(edge.cause, edge.step);
      all_updates += edge.step;
    }
  }

  // Returns by cause what the device adds before its limit cuts it, in W.
  ByCause<double> of_device(const RankPower& power) const {
    ByCause<double> added{};
    each(computations, [&](std::size_t cause, int count) {
      added[cause] += power.of_compute(count, streaming[cause]);
    });
    each(collectives, [&](std::size_t cause, int count) {
      added[cause] += power.of_collectives() * count / all_collectives;
    });
    return added;
  }

  void add(Energy& energy, const RankPower& power, double seconds) const {
    if ((computations.bits | collectives.bits) != 0) {
      const ByCause<double> added = of_device(power);
      const double kept = power.kept(std::accumulate(added.begin(), added.end(), 0.0));
      for (std::uint32_t all = computations.bits | collectives.bits; all != 0; all &= all - 1) {
        const auto cause = static_cast<std::size_t>(std::countr_zero(all));
        of(energy.causes[cause], Drawer::gpus) += kept * added[cause] * seconds;
      }
    }
    each(updates, [&](std::size_t cause, int count) {
      of(energy.causes[cause], Drawer::hosts) += power.cores * count / all_updates * seconds;
    });
  }

 private:
  template <class Visit>
  static void each(const AtWork& work, const Visit& visit) {
    for (std::uint32_t all = work.bits; all != 0; all &= all - 1) {
      const auto cause = static_cast<std::size_t>(std::countr_zero(all));
      visit(cause, work.count[cause]);
    }
  }
};

// Adds the energy of one replayed rank, which stands for `size` ranks, until `end` of what was
// played.
void add_lane(Energy& energy, const std::vector<RankEdge>& edges, const Repeat& repeat, double end,
              double size, const RankPower& power) {
  RankAtWork active;
  Adding adding;
  double now = 0;
  const auto pass = [&](double until) {
    const double seconds = size * repeat.seconds(now, until);
    now = until;
    if (seconds <= 0) return;
    const auto cause = active.exposed();
    ByDrawer<double>& standing = cause ? energy.causes[*cause] : energy.idle;
    of(standing, Drawer::gpus) += power.idle * seconds;
    of(standing, Drawer::hosts) += power.host * seconds;
    of(standing, Drawer::network) += power.network * seconds;
    adding.add(energy, power, seconds);
  };
  for (const RankEdge& edge : edges) {
    pass(edge.time);
    active.change(edge);
    adding.change(edge);
  }
  pass(end);
}

double end_of_played(const Trace& trace) {
  return trace.makespan.value - trace.repeat.added();
}

}  // namespace

ByDrawer<double> Energy::by_drawer() const {
  ByDrawer<double> sum = idle;
  for (const ByDrawer<double>& each : causes)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += each[i];
  return sum;
}

double Energy::total() const {
  const ByDrawer<double> sum = by_drawer();
  return std::accumulate(sum.begin(), sum.end(), 0.0);
}

Energy energy_of(const OpGraph& graph, const Trace& trace, std::span<const std::uint32_t> sizes,
                 const RankPower& power) {
  Energy energy;
  const auto edges = edges_by_rank(graph, trace, sizes.size());
  for (std::size_t lane = 0; lane < sizes.size(); ++lane) {
    add_lane(energy, edges[lane], trace.repeat, end_of_played(trace), sizes[lane], power);
    energy.standing.value += sizes[lane] * power.standing();
  }
  return energy;
}

Meters meters_of(const OpGraph& graph, const Trace& trace, std::size_t lanes,
                 const RankPower& power) {
  Meters meters;
  for (const std::vector<RankEdge>& edges : edges_by_rank(graph, trace, lanes)) {
    Energy lane;
    add_lane(lane, edges, {}, end_of_played(trace), 1, power);
    const ByDrawer<double> drawn = lane.by_drawer();
    meters.gpus.push_back(of(drawn, Drawer::gpus));
    meters.hosts.push_back(of(drawn, Drawer::hosts));
    meters.network.push_back(of(drawn, Drawer::network));
  }
  return meters;
}

}  // namespace stepsim
