#include "workloads/sharding/zero3/zero3.hpp"

#include <algorithm>

#include "workloads/sharding/states.hpp"

namespace stepsim {
namespace {

constexpr double most_parts = 1024;  // sub-groups told apart; of more each is a tensor or so

Pool place_of_parameters(const Strategy& strategy) {
  return strategy.parameter_place == Offload::none ? Pool::device : Pool::pinned;
}

bool on_host(const Strategy& strategy) {
  return strategy.optimizer_place != Offload::none;
}

double secondary_bytes(const RankPart& rank) {
  return rank.input.strategy.precision.numbers * rank.shares.whole /
         static_cast<double>(rank.input.strategy.zero.hpz);
}

double persistent_bytes(const RankPart& rank) {
  return (keeps_reference(rank.input) ? 2 : 1) * rank.input.strategy.precision.numbers *
         rank.tensors.persistent;
}

// Returns the sub-groups of a share of the optimizer: all have the size that is asked for, but the
// last.
std::vector<double> sub_groups(const RankPart& rank, double share) {
  const double all = share * rank.shares.updated;
  const double size =
      std::max(rank.input.strategy.zero.sub_group, rank.shares.updated / most_parts);
  std::vector<double> parts(static_cast<std::size_t>(all / size), size);
  if (const double rest = all - static_cast<double>(parts.size()) * size; rest > 0)
    parts.push_back(rest);
  return parts;
}

// Loads parameters, and those of a reference model, where they stay.
void load(Setup& setup) {
  const RankPart& rank = setup.rank();
  const Strategy& s = setup.strategy();
  const Pool parameters = place_of_parameters(s);
  const double on_drives = parameters_on_drives(rank);
  setup.at("model load");
  if (s.parameter_place == Offload::nvme)
    setup.pin(Held::parameter_buffers, parameter_buffer_bytes(s));
  const auto bring = [&](Held held) {
    setup.load_part(held, parameters, s.precision.numbers);
    setup.give(parameters, held, on_drives * s.precision.numbers * rank.shares.shard);
    setup.take(Pool::disk, held, on_drives * s.precision.numbers * rank.shares.shard);
  };
  bring(Held::parameters);
  if (keeps_reference(rank.input)) bring(Held::reference);
  if (parameters != Pool::device) return;
  setup.at("partition");  // over the host into one buffer, against fragments
  const double bytes = s.precision.numbers * rank.shares.shard;
  setup.take(Pool::pageable, Held::parameters, bytes);
  setup.give(Pool::device, Held::parameters, bytes);
  setup.take(Pool::device, Held::parameters, bytes);
  setup.give(Pool::pageable, Held::parameters, bytes);
}

// Adds what the optimizer has before its first update: fp32 copies, and buffers of gradients.
void add_optimizer(Setup& setup) {
  const RankPart& rank = setup.rank();
  const Strategy& s = setup.strategy();
  const bool drives = s.optimizer_place == Offload::nvme;
  setup.at("fp32 copies");
  if (drives) setup.pin(Held::swap_buffers, swap_buffer_bytes(rank));
  const double share = states_on_device(rank);
  const std::vector<double> on_device = sub_groups(rank, share);
  const std::vector<double> off_device = sub_groups(rank, 1 - share);
  if (s.master_weights) {
    setup.copy_masters(Pool::device, on_device);
    if (drives)
      setup.take(Pool::disk, Held::master_weights, 4 * rank.shares.updated);
    else
      setup.copy_masters(Pool::pageable, off_device);
  }
  setup.at("gradient buffers");
  if (on_host(s)) {
    setup.take(Pool::device, Held::fp32_gradients, 4 * share * rank.shares.updated);
    if (drives)
      setup.take(Pool::disk, Held::fp32_gradients, 4 * rank.shares.updated);
    else
      for (const double part : off_device) setup.pin(Held::fp32_gradients, 4 * part);
  } else {
    setup.take(Pool::device, Held::optimizer_temporary, 4 * on_device.front());
    setup.give(Pool::device, Held::optimizer_temporary, 4 * on_device.front());
  }
  setup.take(Pool::device, Held::bucket, s.precision.numbers * s.zero.reduce_bucket);
  const double gradients = gradient_bytes(s) * rank.shares.updated;
  if (on_host(s))
    setup.pin(Held::gradients, gradients);
  else
    setup.take(Pool::device, Held::gradients, gradients);
}

}  // namespace

// Whole matrices as in DeepSpeed @edaa722, runtime/zero/stage3.py: bucket by bucket the momentum is
// gathered, matrices are dealt out, and updates and momentum gathered, each in 16 bits.
SchemeFacts Zero3::facts(const Strategy& strategy) {
  return {.gathers_parameters = true,
          .scatters_gradients = true,
          .has_sub_groups = true,
          .sends_back = true,
          .takes_apart = strategy.zero.overlap_comm,
          .offloads_optimizer = true,
          .offloads_parameters = true,
          .stored_bytes = strategy.precision.numbers,
          .master_bytes = strategy.master_weights ? 4.0 : 0.0,
          .secondary = static_cast<Rank>(strategy.zero.hpz),
          .matrices = {.dealt = true,
                       .momentum = bytes_16,
                       .gathered = bytes_16,
                       .returned = 2 * bytes_16},
          .slack = &Stack::allocator_slack_gathering};
}

void Zero3::hold(Holdings& holdings, const RankPart& rank) {
  const Strategy& s = rank.input.strategy;
  const Shares& shares = rank.shares;
  const Pool parameters = place_of_parameters(s);
  const double on_drives = parameters_on_drives(rank);
  const auto add = [&](Held held) {
    holdings.add(parameters, held, (1 - on_drives) * s.precision.numbers * shares.shard);
    holdings.add(Pool::disk, held, on_drives * s.precision.numbers * shares.shard);
  };
  add(Held::parameters);
  if (keeps_reference(rank.input)) add(Held::reference);
  if (s.parameter_place == Offload::nvme)
    holdings.add(Pool::pinned, Held::parameter_buffers, parameter_buffer_bytes(s));
  // The secondary partition keeps a copy for the backward gathers.
  if (s.zero.hpz > 1) holdings.add(Pool::device, Held::secondary, secondary_bytes(rank));
  holdings.add(Pool::device, Held::persistent, persistent_bytes(rank));
  holdings.add(Pool::device, Held::bucket, s.precision.numbers * s.zero.reduce_bucket);
  holdings.add(on_host(s) ? Pool::pinned : Pool::device, Held::gradients,
               gradient_bytes(s) * shares.updated);
  const bool drives = s.optimizer_place == Offload::nvme;
  const double on_device = states_on_device(rank) * shares.updated;
  const double off_device = shares.updated - on_device;
  if (on_host(s)) {
    holdings.add(drives ? Pool::disk : Pool::pinned, Held::fp32_gradients, 4 * off_device);
    holdings.add(Pool::device, Held::fp32_gradients, 4 * on_device);
  }
  const Pool states = drives ? Pool::disk : Pool::pageable;
  holdings.add(Pool::device, Held::master_weights, s.master_weights ? 4 * on_device : 0);
  holdings.add(Pool::device, Held::optimizer, state_bytes(rank) * on_device);
  holdings.add(states, Held::master_weights, s.master_weights ? 4 * off_device : 0);
  holdings.add(states, Held::optimizer, state_bytes(rank) * off_device);
  if (drives) holdings.add(Pool::pinned, Held::swap_buffers, swap_buffer_bytes(rank));
}

void Zero3::set_up(Setup& setup) {
  const RankPart& rank = setup.rank();
  const Strategy& s = setup.strategy();
  load(setup);
  add_optimizer(setup);
  setup.at("first update");
  if (s.zero.hpz > 1) setup.take(Pool::device, Held::secondary, secondary_bytes(rank));
  setup.take(Pool::device, Held::persistent, persistent_bytes(rank));
  const double states = state_bytes(rank) * rank.shares.updated, share = states_on_device(rank);
  setup.take_states(share * states, sub_groups(rank, share));
  setup.take(s.optimizer_place == Offload::nvme ? Pool::disk : Pool::pageable, Held::optimizer,
             (1 - share) * states);
}

}  // namespace stepsim
