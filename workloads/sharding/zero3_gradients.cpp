// Gradients of stage 3, and the optimizer step on them.
#include <algorithm>
#include <cmath>

#include "workloads/sharding/sharding.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number
constexpr std::size_t reductions_in_flight = 2;

}  // namespace

// With overlap gradients are copied, reduced and sent to the host one after the other on a stream
// of its own, beside the kernels of the backward pass; without, in line with these.
Mark Zero3::on_reduce_stream(double bytes, double launches, std::string_view name, Mark ready) {
  const StepInput& input = writer_.input();
  if (!input.strategy.zero.overlap_comm)
    return writer_.run({{name, KernelClass::memory, 0, bytes, launches}}, true,
                       Cause::gradient_reduce, name);
  const Mark issued = writer_.host(
      writer_.scaled(launches * input.stack.host.backward_launch.value), Cause::launch, name);
  return writer_.beside(Stream::reduce, bytes, Cause::gradient_reduce, name, {ready, issued});
}

// The rank's parts of all tensors are put behind one another first, unless there is one tensor that
// divides evenly. At the end is the mark behind which the bucket's gradients are not needed.
Mark Zero3::reduce_bucket(bool last_micro_batch) {
  for (; reductions_.size() > reductions_in_flight; reductions_.pop_front())
    writer_.host({0}, Cause::gradient_reduce, "reduce_limit", {reductions_.front()});
  const Bytes bytes{half * bucket_};
  const bool whole = waiting_.size() == 1 && std::fmod(bucket_, writer_.sharers()) == 0;
  const Mark made = writer_.last_compute();
  const Mark ready = writer_.input().strategy.zero.stops_at_fetches ? list_parts(bytes.value, made)
                     : whole ? on_reduce_stream(2 * bytes.value, 1, "divide", made)
                             : on_reduce_stream(3 * bytes.value, 2, "interleave", made);
  const Mark reduced = quantizes_gradients(writer_.input().strategy, writer_.input().cluster)
                           ? exchange_quantized(ready)
                           : writer_.collective(World::reduce_scatter, bytes, Stream::reduce,
                                                Cause::gradient_reduce, "reduce_bucket", {ready});
  writer_.allocate(ready, "reduce_input", whole ? 0 : bytes.value);
  writer_.release(reduced, "reduce_input", whole ? 0 : bytes.value);
  if (!writer_.input().strategy.zero.overlap_comm) writer_.compute_after(reduced);
  const bool offloaded = writer_.input().strategy.optimizer_place != Offload::none;
  reductions_.push_back(offloaded ? to_host(reduced, last_micro_batch) : reduced);
  waiting_.clear();
  bucket_ = 0;
  return reduced;
}

// The same by releases that stop at fetches: divided in place, and handed over as a list of parts,
// of which PyTorch copies one after the other behind the one before.
Mark Zero3::list_parts(double bytes, Mark made) {
  const double copies = writer_.sharers() * static_cast<double>(waiting_.size());
  writer_.spend(writer_.scaled(copies * writer_.input().stack.host.forward_launch.value));
  return on_reduce_stream(4 * bytes, 1, "divide_and_list", made);
}

// Tensor by tensor: 4 bits to the ranks of the node, which sum them up, and 4 bits of the sums to
// the ranks of equal place in the other nodes. Vectors go as they are.
Mark Zero3::exchange_quantized(Mark ready) {
  const StepInput& input = writer_.input();
  const Rank neighbours = input.cluster.gpus_per_node() / writer_.mesh().tensor;
  const auto in_node = static_cast<double>(neighbours);
  constexpr double nibble = 0.5;
  Mark last = ready;
  const auto beside = [&](double bytes, std::string_view name) {
    last = writer_.beside(Stream::reduce, bytes, Cause::gradient_reduce, name, {last});
  };
  const auto send = [&](World world, double bytes, std::string_view name) {
    last = writer_.collective(world, {bytes}, Stream::reduce, Cause::gradient_reduce, name, {last});
  };
  for (const auto& [elements, vector] : waiting_) {
    if (vector || std::fmod(elements, 2 * writer_.sharers()) != 0) {
      send(World::reduce_scatter, half * elements, "reduce_vector");
      continue;
    }
    beside((half + nibble) * elements, "quantize");
    send(World::inside_exchange, nibble * elements, "exchange_inside");
    beside(nibble * elements + nibble * elements / in_node, "sum_and_quantize");
    send(World::across_exchange, nibble * elements / in_node, "exchange_across");
    beside((nibble + half) * elements / in_node, "dequantize");
  }
  return last;
}

// A partition of gradients goes down in 16 bits and comes back up, or the other way round where the
// last micro-batch's are added to; at the boundary it goes down in fp32: eight bytes an element
// over the host link. What is on its way has device memory for a tensor at a time, in 16 bits and
// in fp32; the next bucket waits.
Mark Zero3::to_host(Mark reduced, bool last_micro_batch) {
  const double elements = bucket_ / writer_.sharers();
  double largest = 0;
  for (const Waiting& each : waiting_) largest = std::max(largest, each.elements);
  const double part = largest / writer_.sharers();
  const auto copy = [&](World way, double bytes, Mark ready) {
    return writer_.traffic(way, {bytes * elements}, Cause::offload_transfer, "gradient_partition",
                           {ready});
  };
  const Mark down = copy(World::to_host, half, reduced);
  const Mark up = copy(World::to_device, half, down);
  Mark done = up;
  if (last_micro_batch) {
    // Sub-groups that are updated on the device keep theirs there.
    done = copy(World::to_host, 4 * (1 - here_), up);
    if (writer_.input().strategy.optimizer_place == Offload::nvme) copy(World::to_drive, 4, done);
  }
  const double held = (half + (last_micro_batch ? 4 : 0)) * part;
  writer_.allocate(up, "gradient_copy", held);
  writer_.release(done, "gradient_copy", held);
  writer_.stream_after(Stream::reduce, done, Cause::offload_transfer);
  return done;
}

void Zero3::finish_backward(bool last_micro_batch) {
  if (bucket_ > 0) reduce_bucket(last_micro_batch);
  live_ = 0;
  prefetched_ = 0;
  scheduled_.assign(scheduled_.size(), 0);
  uncut_.clear();
  fetches_.clear();
  reductions_.clear();
  given_up_.clear();  // the host waits for everything
  held_ = 0;
  writer_.context.layer = -1;
  writer_.drain(writer_.input().stack.host.sync.value, Cause::gradient_reduce, "synchronize");
}

// Sub-group by sub-group: a norm that everybody waits for, a loop over all tensors of the model to
// clear their gradients, the update. Sub-groups of size 0 are one tensor each, so the loop is
// quadratic in the number of tensors.
void Zero3::step() {
  const StepInput& input = writer_.input();
  const double core = input.cluster.node.host.core_speed.value.value;
  const double shard = parameters_ / writer_.sharers();
  const double size = input.strategy.zero.sub_group;
  const auto groups =
      static_cast<std::size_t>(size <= 0 ? tensors_ : std::max(1.0, std::ceil(shard / size)));
  const double count = static_cast<double>(groups);
  const double part = shard / count;
  writer_.context = {Phase::optimizer, -1, -1};
  for (std::size_t i = 0; i < groups; ++i) {
    writer_.run({{"norm", KernelClass::memory, 0, half * part, 3 * tensors_ / count}}, false,
                Cause::optimizer, "gradient_norm");
    const Mark norm = writer_.collective(World::signal, {8}, Stream::reduce, Cause::optimizer,
                                         "norm", {writer_.last_compute()});
    writer_.compute_after(norm);
  }
  const Mark ready = writer_.last_compute();
  const Seconds clear = tensors_ * input.stack.host.clear_visit.value;
  const Offload place = input.strategy.optimizer_place;
  if (place == Offload::nvme)
    writer_.host({0}, Cause::offload_transfer, "gradients_written", {writer_.last_copy()});
  // Those that stay on the device come first, so that both work at the same time.
  const auto on_device =
      place == Offload::cpu ? std::floor((1 - input.strategy.offload.ratio) * count) : 0;
  for (std::size_t i = 0; i < groups; ++i) {
    const bool clears = i == 0 || input.strategy.zero.clears_in_sub_groups;
    writer_.host((input.stack.host.sub_group.value + (clears ? clear : Seconds{0})) / core,
                 Cause::optimizer, "sub_group");
    if (place == Offload::none || static_cast<double>(i) < on_device)
      update_on_device(part);
    else if (place == Offload::nvme)
      update_from_drive(part, i + 1 == groups, ready);
    else
      update_on_host(part, ready);
  }
  gather_persistent();
  writer_.drain({0}, Cause::optimizer, "step_done");
}

void Zero3::update_on_device(double part) {
  const Strategy& s = writer_.input().strategy;
  const bool split = s.optimizer_place != Offload::none;  // then fp32 gradients are there already
  const UpdateCost cost = update_cost(writer_.input().stack.operators.adamw, s, {part, 1, part});
  std::vector<KernelRow> rows{update_row(cost, optimizer_traffic_bytes(s) * part, 3)};
  if (!split)
    rows.insert(rows.begin(), {"flatten", KernelClass::memory, 0, (2 * half + 4) * part, 2});
  const Mark update = writer_.run(rows, false, Cause::optimizer, "update");
  writer_.allocate(update, "update_temporary", cost.temporary);
  writer_.release(update, "update_temporary", cost.temporary);
  if (split) {
    if (s.parameter_place != Offload::none)
      writer_.traffic(World::to_host, {half * part}, Cause::offload_transfer, "parameters_to_host",
                      {update});
    return;
  }
  const double flat = gradient_bytes(s) * part;
  const double fp32 = flat < 4 * part ? 4 * part : 0;
  writer_.allocate(update, "flat_gradient", flat);
  writer_.allocate(update, "fp32_gradient", fp32);
  writer_.release(update, "fp32_gradient", fp32);
  writer_.release(update, "flat_gradient", flat);
  stop_behind_update(writer_, 1);
}

void Zero3::update_on_host(double part, Mark ready) {
  const Mark updated = update_shard_on_host(writer_, part, ready);
  const StepInput& input = writer_.input();
  if (input.strategy.parameter_place == Offload::none)
    writer_.traffic(World::to_device, {half * part}, Cause::offload_transfer,
                    "parameters_to_device", {updated});
  if (far_ > 0)
    writer_.traffic(World::to_drive, {far_ * half * part}, Cause::offload_transfer,
                    "parameters_to_drive", {updated});
}

// The fp32 copy, the moments and the gradient of a sub-group.
Mark Zero3::read_states(double part) {
  return writer_.traffic(World::from_drive,
                         {(4 + state_bytes(writer_.input().strategy) + 4) * part},
                         Cause::offload_transfer, "states_from_drive");
}

// A sub-group is read, updated, written. Pipelined, the next one comes and the one before goes
// meanwhile.
void Zero3::update_from_drive(double part, bool last, Mark ready) {
  const Strategy& s = writer_.input().strategy;
  const auto wait = [&](Mark mark) {
    writer_.host({0}, Cause::offload_transfer, "drive_wait", {mark});
  };
  wait(read_ ? *read_ : read_states(part));
  read_.reset();
  if (s.offload.pipeline_read && !last) read_ = read_states(part);
  update_on_host(part, ready);
  if (written_) wait(*written_);
  written_ = writer_.traffic(World::to_drive, {(4 + state_bytes(s)) * part},
                             Cause::offload_transfer, "states_to_drive");
  if (s.offload.pipeline_write && !last) return;
  wait(*written_);
  written_.reset();
}

// What stays gathered was partitioned for the update: tensor by tensor, without waiting.
void Zero3::gather_persistent() {
  for (const double elements : persistent_) {
    Mark ready = writer_.last_compute();
    if (writer_.input().strategy.parameter_place != Offload::none)
      ready = to_device(elements, writer_.last_host());
    writer_.collective(World::all_gather, {half * elements}, Stream::gather, Cause::gather_bytes,
                       "gather_persistent", {ready, writer_.last_copy()});
  }
}

}  // namespace stepsim
