#include "workloads/sharding/fsdp/fsdp.hpp"

#include "workloads/sharding/states.hpp"

namespace stepsim {
namespace {

// What is trained has the type of the master copy; what adapters leave frozen has 16 bits, or is
// quantised, unless the stack loads all of it in fp32.
double parameter_bytes(const RankPart& rank) {
  const Strategy& s = rank.input.strategy;
  const double stored = FullySharded::facts(s).stored_bytes;
  const bool whole = rank.input.stack.fp32_frozen && s.lora.quantised == Quantised::none;
  const double frozen = whole ? stored : s.precision.numbers;
  return stored * rank.shares.updated + frozen * (rank.shares.shard - rank.shares.updated);
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
// and go with the update.
void FullySharded::hold(Holdings& holdings, const RankPart& rank) {
  holdings.add(Pool::device, Held::parameters, parameter_bytes(rank));
  if (keeps_reference(rank.input))
    holdings.add(Pool::device, Held::reference,
                 rank.input.strategy.precision.numbers * rank.shares.shard);
  holdings.add(Pool::device, Held::optimizer, state_bytes(rank) * rank.shares.updated);
}

void FullySharded::set_up(Setup& setup) {
  const RankPart& rank = setup.rank();
  const double gradients = gradients_at_update(rank);
  setup.load_part(Held::parameters, Pool::device, parameter_bytes(rank) / rank.shares.shard);
  if (keeps_reference(rank.input))
    setup.load_part(Held::reference, Pool::device, rank.input.strategy.precision.numbers);
  setup.at("first update");
  setup.take(Pool::device, Held::own_gradients, gradients);
  setup.take_states(state_bytes(rank) * rank.shares.updated, trained_tensors(rank.units));
  setup.give(Pool::device, Held::own_gradients, gradients);
}

double FullySharded::gradients_at_update(const RankPart& rank) {
  return facts(rank.input.strategy).stored_bytes * rank.shares.updated;
}

}  // namespace stepsim
