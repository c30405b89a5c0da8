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

AllocatingStreams allocating_streams(const Strategy& strategy) {
  AllocatingStreams streams{};
  const auto place = [&](Held held) -> std::uint8_t& {
    return streams[static_cast<std::size_t>(held)];
  };
  const SchemeFacts facts = facts_of(strategy);
  place(Held::arrived) = 1;
  if (facts.keeps_apart) place(Held::own_gradients) = 2;
  if (!facts.takes_apart) return streams;
  place(Held::gathered) = 1;
  for (const Held reduced : {Held::reduce_input, Held::gradient_copy, Held::own_gradients})
    place(reduced) = 2;
  return streams;
}

Constant<Ratio> slack_of(const StepInput& input) {
  Constant<Ratio> slack = input.stack.*facts_of(input.strategy).slack;
  if (input.strategy.expandable_segments) slack.value = slack.low = slack.high = Ratio{0};
  return slack;
}

Allocator allocator_of(const RankPart& rank) {
  const auto& memory = rank.input.cluster.gpu.memory;
  return {(memory.usable.value - memory.library.value).value, resident_of(rank).in(Pool::device),
          allocating_streams(rank.input.strategy)};
}

}  // namespace stepsim
