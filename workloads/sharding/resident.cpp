#include "workloads/sharding/resident.hpp"

#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/sharding/schemes.hpp"

namespace stepsim {

double Resident::in(Pool pool) const {
  double sum = 0;
  for (const Holding& holding : holdings)
    if (holding.pool == pool) sum += holding.bytes;
  return sum;
}

Resident resident_of(const RankPart& rank) {
  Holdings holdings;
  with_scheme(rank.input.strategy, [&]<Scheme S>() { S::hold(holdings, rank); });
  return std::move(holdings.resident);
}

double states_of(const RankPart& rank) {
  double sum = 0;
  for (const Holding& holding : resident_of(rank).holdings)
    for (const Held kept :
         {Held::parameters, Held::gradients, Held::master_weights, Held::optimizer})
      if (holding.pool == Pool::device && holding.held == kept) sum += holding.bytes;
  return sum +
         with_scheme(rank.input.strategy, [&]<Scheme S>() { return S::gradients_at_update(rank); });
}

std::size_t allocating_stream(const Strategy& strategy, std::string_view held) {
  if (!facts_of(strategy).takes_apart) return 0;
  if (held == to_text(Held::gathered)) return 1;
  return held == to_text(Held::reduce_input) || held == to_text(Held::gradient_copy) ? 2 : 0;
}

const Constant<Ratio>& slack_of(const StepInput& input) {
  return input.stack.*facts_of(input.strategy).slack;
}

}  // namespace stepsim
