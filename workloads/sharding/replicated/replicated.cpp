#include "workloads/sharding/replicated/replicated.hpp"

#include "workloads/layers/rank_share.hpp"
#include "workloads/sharding/states.hpp"

namespace stepsim {
namespace {

// A group of tensors moves into one flat buffer: on the device where both fit beside one another,
// else over the host.
void flatten(Setup& setup, double elements) {
  const StepInput& input = setup.rank().input;
  const double bytes = input.strategy.precision.numbers * elements;
  const double slack = slack_of(input).value.value;
  const double free = input.cluster.gpu.memory.usable.value.value - setup.on_device() * (1 + slack);
  if (free >= bytes) {
    setup.take(Pool::device, Held::parameters, bytes);
    setup.give(Pool::device, Held::parameters, bytes);
    return;
  }
  setup.take(Pool::pageable, Held::parameters, bytes);
  setup.give(Pool::device, Held::parameters, bytes);
  setup.take(Pool::pageable, Held::parameters, bytes);
  setup.take(Pool::device, Held::parameters, bytes);
  setup.give(Pool::pageable, Held::parameters, 2 * bytes);
}

// Weight decay splits the parameters; experts have groups of their own.
void flatten_groups(Setup& setup) {
  const Strategy& s = setup.strategy();
  const Shares& shares = setup.rank().shares;
  setup.at("flattening");
  if (s.lora.rank > 0 || setup.rank().input.model.tower) return flatten(setup, shares.trained);
  const ParameterCount count = count_parameters(model_of_rank(setup.rank().input.model, s));
  const double vectors = static_cast<double>(count.of(TensorClass::norm));
  const double experts = sends_tokens(s) ? static_cast<double>(count.of(TensorClass::expert)) /
                                               static_cast<double>(s.experts.parallel)
                                         : 0;
  for (const double group : {shares.whole - experts - vectors, vectors, experts})
    flatten(setup, group);
}

// Returns the pool that gradients on the host are in.
Pool pool_of_gradients(const Strategy& s) {
  return s.offload.pins || keeps_whole_gradient(s) ? Pool::pinned : Pool::pageable;
}

// Returns the bytes that autograd is handed for matrices whose gradients are in the buffer already.
double placeholders(const RankPart& rank) {
  const Strategy& s = rank.input.strategy;
  return s.distributed.used ? s.precision.numbers * rank.tensors.shapes : 0;
}

double ddp_buckets(const RankPart& rank) {
  return keeps_all_buckets(rank) ? rank.input.strategy.precision.numbers * rank.shares.trained : 0;
}

void add_gradient_buffers(Setup& setup, double on_host) {
  setup.at("gradient buffers");
  const auto add = [&](Held held, double bytes) {
    if (pool_of_gradients(setup.strategy()) == Pool::pinned)
      setup.pin(held, bytes);
    else
      setup.take(Pool::pageable, held, bytes);
  };
  const StepInput& input = setup.rank().input;
  const double largest = input.strategy.precision.numbers * setup.rank().tensors.largest;
  const bool kept = keeps_whole_gradient(input.strategy);
  setup.take(Pool::device, Held::gradients, placeholders(setup.rank()));
  setup.take(Pool::device, Held::bucket, ddp_buckets(setup.rank()));
  if (kept)
    setup.take(Pool::device, Held::gradients,
               gradient_bytes(input.strategy) * setup.rank().shares.trained);
  if (on_host <= 0) return;
  add(Held::fp32_gradients, 4 * on_host);
  setup.take(Pool::device, Held::offload_buffer, largest);
  add(Held::offload_buffer, largest);
  if (input.job.accumulation > 1 && !kept)
    add(Held::gradients, input.strategy.precision.numbers * on_host);
}

}  // namespace

SchemeFacts Replicated::facts(const Strategy& strategy) {
  const bool shares = strategy.sharding != Sharding::zero0;
  // Without stages it is as in github.com/KellerJordan/Muon @857d1ad: matrices are dealt out, and
  // the updated parameters gathered. Stages 1 and 2 are as in DeepSpeed @edaa722,
  // runtime/zero/stage_1_and_2.py: gradients are whole, and a rank takes all that its part touches.
  const WholeMatrices matrices{
      .flat = shares,
      .dealt = !shares,
      .partitioned = false,
      .momentum = shares ? gradient_bytes(strategy)
                         : (strategy.master_weights ? 4 : strategy.precision.numbers),
      .returned = shares ? 0 : bytes_16};
  return {.shares_states = shares,
          .takes_apart = strategy.zero.overlap_comm,
          .offloads_optimizer = shares,
          .stored_bytes = strategy.precision.numbers,
          .master_bytes = strategy.master_weights ? 4.0 : 0.0,
          .matrices = matrices};
}

SchemeFacts Distributed::facts(const Strategy& strategy) {
  SchemeFacts facts = Replicated::facts(strategy);
  facts.scatters_gradients = true;
  // Moonshot's distributed Muon (arXiv 2502.16982, Algorithm 1): inputs are gathered in 16 bits.
  facts.matrices = {.gathered = bytes_16};
  return facts;
}

// The product for the weights reads and writes the buffer instead of writing a gradient of its own.
std::vector<KernelRow> Distributed::gradient_kernels(const StepInput& input, const Unit& unit) {
  const double more = 2 * gradient_bytes(input.strategy) - input.strategy.precision.numbers;
  return {{"accumulate", KernelClass::memory, 0, more * unit.elements(), 0}};
}

// Gradients come and go within a step, but for the one buffer that accumulates them in fp32.
void Replicated::hold(Holdings& holdings, const RankPart& rank) {
  const Strategy& s = rank.input.strategy;
  const double owned = owned_elements(rank);
  holdings.add(Pool::device, Held::parameters, s.precision.numbers * rank.shares.whole);
  holdings.add(Pool::device, Held::cast_weights, s.precision.weights * rank.tensors.narrow);
  if (keeps_reference(rank.input))
    holdings.add(Pool::device, Held::reference, s.precision.numbers * rank.shares.whole);
  const double kept = keeps_whole_gradient(s) ? gradient_bytes(s) * rank.shares.trained : 0;
  holdings.add(Pool::device, Held::gradients, kept + placeholders(rank));
  holdings.add(Pool::device, Held::bucket, ddp_buckets(rank));
  const double on_device = states_on_device(rank) * owned, on_host = owned - on_device;
  holdings.add(Pool::device, Held::master_weights, s.master_weights ? 4 * on_device : 0);
  holdings.add(Pool::device, Held::optimizer, state_bytes(rank) * on_device);
  if (s.optimizer_place == Offload::none) return;
  // A tensor's gradient passes through a buffer on both sides; its sum waits in 16 bits.
  const double largest = s.precision.numbers * rank.tensors.largest;
  holdings.add(Pool::device, Held::offload_buffer, largest);
  const Pool pool = pool_of_gradients(s);
  holdings.add(pool, Held::offload_buffer, largest);
  holdings.add(pool, Held::fp32_gradients, 4 * on_host);
  if (rank.input.job.accumulation > 1 && !keeps_whole_gradient(s))
    holdings.add(pool, Held::gradients, s.precision.numbers * on_host);
  holdings.add(Pool::pageable, Held::master_weights, 4 * on_host);
  holdings.add(Pool::pageable, Held::optimizer, state_bytes(rank) * on_host);
  holdings.add(Pool::pageable, Held::update_copy, s.precision.numbers * on_host);
}

void Replicated::set_up(Setup& setup) {
  const RankPart& rank = setup.rank();
  const Strategy& s = setup.strategy();
  const bool shares = s.sharding != Sharding::zero0;
  setup.at("model load");
  setup.load_whole(Held::parameters, s.precision.numbers * rank.shares.whole);
  if (keeps_reference(rank.input))
    setup.load_whole(Held::reference, s.precision.numbers * rank.shares.whole);
  if (shares) flatten_groups(setup);
  setup.at("fp32 copies");
  const double owned = owned_elements(rank);
  const double on_device = states_on_device(rank) * owned, on_host = owned - on_device;
  if (s.master_weights && on_device > 0) setup.copy_masters(Pool::device, {on_device});
  if (on_host > 0) setup.copy_masters(Pool::pageable, {on_host});
  if (shares) {  // a gradient of zeros, for the states' sake
    setup.take(Pool::device, Held::optimizer_temporary, 4 * on_device);
    setup.give(Pool::device, Held::optimizer_temporary, 4 * on_device);
  }
  add_gradient_buffers(setup, on_host);
  setup.at("first update");
  setup.take(Pool::device, Held::cast_weights, s.precision.weights * rank.tensors.narrow);
  setup.take_states(state_bytes(rank) * on_device,
                    shares ? std::vector{owned} : trained_tensors(rank.units));
  setup.take(Pool::pageable, Held::optimizer, state_bytes(rank) * on_host);
  setup.take(Pool::pageable, Held::update_copy, s.precision.numbers * on_host);
}

// They come with the backward pass, but for those that are always there.
double Replicated::gradients_at_update(const RankPart& rank) {
  const Strategy& s = rank.input.strategy;
  if (s.sharding == Sharding::zero0) return s.precision.numbers * rank.shares.trained;
  if (keeps_whole_gradient(s)) return 0;
  return states_on_device(rank) * gradient_bytes(s) * rank.shares.updated;
}

}  // namespace stepsim
