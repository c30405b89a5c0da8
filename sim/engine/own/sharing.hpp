// Sharing gives each flow its max-min rate at a moment: nobody can have more without taking it from
// somebody who has no more than he. Only flows that are connected with a change are looked at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/series.hpp"
#include "sim/op_graph.hpp"
#include "sim/platform.hpp"

namespace stepsim {

class Sharing {
 public:
  // A flow that is under way, by the number that its owner gave it; numbers come again.
  using Slot = std::uint32_t;

  Sharing(const Platform& platform, const OpGraph& graph);

  // That flow of a round begins, or ends.
  void enter(Slot slot, PatternId pattern, std::uint32_t round, std::uint32_t number);
  void leave(Slot slot);
  // These give a link this share of its capacity from now on: scale() beside compute, change() by a
  // change that the platform foresees.
  void scale(LinkId link, double share);
  void change(LinkId link, double share);

  // Returns the flows whose rate has changed since the last call. The span is valid until the next
  // call.
  std::span<const Slot> settle();
  double rate(Slot slot) const { return under_way_[slot].rate; }  // B/s

 private:
  // A route crosses the link so many times.
  struct Crossing {
    std::uint32_t link = 0, times = 0;
  };
  struct UnderWay {
    std::uint32_t route = 0;
    double rate = 0;
    double most = 0;          // B/s: its own limit
    std::uint64_t seen = 0;   // in which search
    std::uint64_t fixed = 0;  // in which search it got its rate
  };
  // A visitor is one end of a crossing: it says whose, and which of its route's.
  struct Visitor {
    Slot slot = 0;
    std::uint32_t crossing = 0;
  };
  struct Constraint {
    double capacity = 0;
    std::uint32_t users = 0;  // flows on it, each as often as it crosses
    std::uint64_t seen = 0;
    bool changed = false;
    double left = 0;  // while rates are found: what those without a rate share
    std::uint32_t without_rate = 0;
    std::vector<Visitor> visitors{};
  };

  std::span<const Crossing> route(std::uint32_t number) const {
    return std::span(crossings_)
        .subspan(route_ends_[number], route_ends_[number + 1] - route_ends_[number]);
  }
  void add_route(const Flow& flow, std::vector<std::uint32_t>& number_of);
  void note(std::uint32_t link);
  void take_width(LinkId link);
  void search(std::uint32_t link);
  void find_rates();
  double least_share();
  void fix_at(double rate);
  void fix(Slot slot, double rate);

  std::span<const Link> links_;
  Series series_;
  std::vector<std::uint32_t> first_round_;  // [pattern] -> into first_flow_
  std::vector<std::uint32_t> first_flow_;   // [round of all patterns] -> number of its first route
  std::vector<std::uint64_t> route_ends_{0};
  std::vector<Crossing> crossings_;
  std::vector<double> caps_;  // [route] B/s
  std::size_t longest_ = 1;   // crossings of a route

  std::vector<Constraint> constraints_;  // [link]
  std::vector<UnderWay> under_way_;      // [slot]
  std::vector<std::uint32_t> places_;    // [slot x longest_ + crossing] among the link's visitors
  std::vector<std::uint32_t> changed_;   // links
  std::vector<Slot> answers_;

  std::uint64_t searches_ = 0;
  std::vector<std::uint32_t> found_links_;  // of one search, those with flows that have no rate yet
  std::vector<Slot> found_flows_, capped_;
};

}  // namespace stepsim
