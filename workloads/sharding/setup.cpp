#include "workloads/sharding/setup.hpp"

#include <algorithm>
#include <numeric>

#include "workloads/layers/rank_share.hpp"
#include "workloads/sharding/schemes.hpp"

namespace stepsim {
namespace {

constexpr double checkpoint_file = 5e9;  // bytes of one file of a model as it is published

}  // namespace

void Setup::take(Pool pool, Held held, double bytes) {
  if (bytes == 0) return;
  changes_.push_back({moment_, pool, held, bytes});
  if (pool == Pool::device) on_device_ += bytes;
}

void Setup::pin(Held held, double bytes) {
  take(Pool::pageable, held, bytes);
  take(Pool::pinned, held, bytes);
  give(Pool::pageable, held, bytes);
}

void Setup::take_states(double bytes, const std::vector<double>& parts) {
  const double moments = std::max(1.0, strategy().optimizer.moments);
  const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
  if (all <= 0) return;  // adapters may all stand in other stages
  for (const double part : parts)
    for (int moment = 0; moment < moments; ++moment)
      take(Pool::device, Held::optimizer, bytes * part / all / moments);
}

void Setup::load_whole(Held held, double bytes) {
  take(Pool::pageable, Held::checkpoint, bytes);
  take(Pool::device, held, bytes);
  give(Pool::pageable, Held::checkpoint, bytes);
}

void Setup::load_part(Held held, Pool pool, double stored) {
  at("model load");
  if (strategy().load == Loading::replica)
    partition(held, pool, stored);
  else
    load_sharded(held, pool, stored);
}

// Loads module by module: built on the device, filled from a file that one rank of the first node
// reads, partitioned. The largest module is whole for a moment beside the shards.
void Setup::load_sharded(Held held, Pool pool, double stored) {
  const double file =
      std::min(checkpoint_file, rank_.input.strategy.precision.numbers * rank_.shares.whole) /
      static_cast<double>(rank_.input.cluster.gpus_per_node());
  take(Pool::pageable, Held::checkpoint, file);
  take(pool, held, stored * rank_.shares.shard);
  take(Pool::device, Held::whole_module, stored * rank_.tensors.largest_module);
  give(Pool::device, Held::whole_module, stored * rank_.tensors.largest_module);
  give(Pool::pageable, Held::checkpoint, file);
}

// The model is there, whole, on every device: tensor by tensor a shard is cut out of it. Where
// ranks with different experts have the same rows, each builds all experts and drops the others'.
void Setup::partition(Held held, Pool pool, double stored) {
  const ParameterCount count = count_parameters(model_of_rank(rank_.input.model, strategy()));
  const double others = static_cast<double>(count.of(TensorClass::expert)) *
                        (1 - 1 / static_cast<double>(repeats_of(strategy())));
  const Shares& shares = rank_.shares;
  load_whole(held, stored * (shares.whole + others));
  give(Pool::device, held, stored * others);
  at("partition");
  const double first = stored * rank_.tensors.largest * shares.shard / shares.whole;
  take(pool, held, first);
  give(Pool::device, held, stored * shares.whole);
  take(pool, held, stored * shares.shard - first);
}

// The result of a cast is copied; the name of the cast one is kept until the next.
void Setup::copy_masters(Pool pool, const std::vector<double>& parts) {
  double before = 0;
  for (const double part : parts) {
    take(pool, Held::master_weights, 4 * part);
    give(pool, Held::master_weights, before);
    take(pool, Held::master_weights, 4 * part);
    before = 4 * part;
  }
  give(pool, Held::master_weights, before);
}

std::vector<SetupChange> setup_of(const RankPart& rank) {
  Setup setup(rank);
  with_scheme(rank.input.strategy, [&]<Scheme S>() { S::set_up(setup); });
  return setup.take_changes();
}

}  // namespace stepsim
