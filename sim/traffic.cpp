#include "sim/traffic.hpp"

#include <array>

#include "sim/base/lists.hpp"

namespace stepsim {

Flow flow_between(const Exchange& exchange, const FarEnd& from, const FarEnd& to) {
  Flow flow{.source = from.rank,
            .target = to.rank,
            .path = from.out,
            .share = exchange.share,
            .wire = exchange.wire};
  if (from.area != to.area) flow.path.append(std::array{from.up, to.down});
  flow.path.append(to.in);
  return flow;
}

Pattern spelt_out(Pattern pattern) {
  for (Round& round : pattern.rounds) {
    const Exchange exchange = std::move(round.exchange);
    round.exchange = {};
    for (const FarEnd& from : exchange.ends)
      for (const FarEnd& to : exchange.ends)
        if (from.place != to.place) round.flows.push_back(flow_between(exchange, from, to));
  }
  return pattern;
}

}  // namespace stepsim
