#include "workloads/sharding/fsdp/fsdp.hpp"

#include "workloads/sharding/states.hpp"

namespace stepsim {
namespace {

double parameter_bytes(const RankPart& rank) {
  return FullySharded::facts(rank.input.strategy).stored_bytes * rank.shares.updated +
         frozen_width(rank.input) * (rank.shares.shard - rank.shares.updated);
}

double kept_gradients(const RankPart& rank) {
  return FullySharded::facts(rank.input.strategy).stored_bytes * rank.shares.updated;
}

}  // namespace

// Its second version shards matrices by rows; whole ones go to their ranks and back all to all,
// shape by shape (github.com/microsoft/dion @0a059a4, dion/megabatch_base.py), or to all, which
// keep their rows of the result (VMAP_REPLICATED of Levanter's optim/grugmuon.py, marin @4b384db).
// It takes what it gathers on the stream of the kernels.
SchemeFacts FullySharded::facts(const Strategy& strategy) {
  const double stored = strategy.master_weights ? 4.0 : strategy.precision.numbers;
  const bool everywhere = strategy.matrix_updates == MatrixUpdates::everywhere;
  return {.gathers_parameters = true,
          .scatters_gradients = true,
          .takes_apart = strategy.fsdp.version == 1,
          .keeps_apart = true,
          .offloads_optimizer = true,
          .offloads_parameters = true,
          .offloads_together = true,
          .updates_stored = true,
          .stored_bytes = stored,
          .matrices = {.flat = strategy.fsdp.version == 1,
                       .dealt = !everywhere,
                       .everywhere = everywhere,
                       .by_shape = true,
                       .momentum = stored,
                       .gathered = everywhere ? bytes_16 : 0.0,
                       .exchanged = everywhere ? 0.0 : bytes_16}};
}

// The sharded parameters are the master copy themselves. Gradients come with the first reduction
// and go with the update; those that are copied to the host stay where the copies of the step
// before were.
void FullySharded::hold(Holdings& holdings, const RankPart& rank) {
  const bool host = keeps_on_host(rank.input.strategy);
  const Pool parameters = host ? Pool::pinned : Pool::device;
  holdings.add(parameters, Held::parameters, parameter_bytes(rank));
  if (keeps_reference(rank.input))
    holdings.add(parameters, Held::reference,
                 rank.input.strategy.precision.numbers * rank.shares.shard);
  holdings.add(host ? Pool::pageable : Pool::device, Held::optimizer,
               state_bytes(rank) * rank.shares.updated);
  if (host) holdings.add(Pool::pinned, Held::own_gradients, kept_gradients(rank));
}

void FullySharded::set_up(Setup& setup) {
  const RankPart& rank = setup.rank();
  const bool host = keeps_on_host(rank.input.strategy);
  const Pool parameters = host ? Pool::pinned : Pool::device;
  const double states = state_bytes(rank) * rank.shares.updated;
  setup.load_part(Held::parameters, parameters, parameter_bytes(rank) / rank.shares.shard);
  if (keeps_reference(rank.input))
    setup.load_part(Held::reference, parameters, rank.input.strategy.precision.numbers);
  setup.at("first update");
  if (host) {
    setup.take(Pool::pinned, Held::own_gradients, kept_gradients(rank));
    setup.take(Pool::pageable, Held::optimizer, states);
    return;
  }
  setup.take(Pool::device, Held::own_gradients, kept_gradients(rank));
  setup.take_states(states, trained_tensors(rank.units));
  setup.give(Pool::device, Held::own_gradients, kept_gradients(rank));
}

double FullySharded::gradients_at_update(const RankPart& rank) {
  return keeps_on_host(rank.input.strategy) ? 0 : kept_gradients(rank);
}

}  // namespace stepsim
