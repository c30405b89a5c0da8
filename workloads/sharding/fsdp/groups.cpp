#include "workloads/sharding/fsdp/groups.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "workloads/sharding/states.hpp"
#include "workloads/sharding/updates.hpp"
#include "workloads/sharding/whole_matrices.hpp"

namespace stepsim {
namespace {

constexpr std::size_t no_group = std::numeric_limits<std::size_t>::max();
constexpr std::size_t groups_in_flight = 2;  // version 1: the length of its queue of free events

}  // namespace

bool keeps_on_host(const Strategy& strategy) {
  return strategy.parameter_place != Offload::none;
}

double frozen_width(const StepInput& input) {
  const Strategy& s = input.strategy;
  const bool wide = input.stack.fp32_frozen || s.lora.frozen == LoraFrozen::fp32;
  const bool whole = wide && !s.lora.quantised.packs() && s.master_weights;
  return whole ? 4 : s.precision.numbers;
}

FullyShardedGroups::FullyShardedGroups(StepWriter& writer, const std::vector<Visit>& visits)
    : writer_(writer),
      keys_(writer.input().strategy.fsdp),
      numbers_(2),
      on_host_(keeps_on_host(writer.input().strategy)) {
  for (std::size_t i = 0; i < visits.size(); ++i) {
    add_call(i, visits[i]);
    if (visits[i].phase == Phase::forward) count(visits[i], groups_[calls_[call_of_[i]].group]);
  }
  if (flattens_frozen(writer_.input().strategy))
    for (Group& group : groups_)
      if (group.trained > 0) group.trained = group.elements;
  std::vector<bool> called(groups_.size(), false), forward(groups_.size(), false);
  for (std::size_t i = calls_.size(); i-- > 0;) {
    const std::size_t group = calls_[i].group;
    calls_[i].again = called[group];
    called[group] = true;
    if (calls_[i].phase != Phase::forward) continue;
    calls_[i].turns = !forward[group];
    forward[group] = true;
  }
}

void FullyShardedGroups::count(const Visit& now, Group& group) {
  const auto tensors = static_cast<double>(now.unit->tensors.size());
  group.elements += now.unit->elements();
  const double narrow = keys_.narrow_gather ? now.unit->narrow : 0;
  const double used = writer_.number_bytes() * (now.unit->elements() - narrow) +
                      bytes_of(writer_.input().strategy.precision.type) * narrow;
  group.used_bytes += used;
  group.gathered_bytes +=
      now.frozen ? used : used + (gathered_width() - writer_.number_bytes()) * now.unit->elements();
  group.tensors += tensors;
  group.trained += now.unit->trained_elements();
  if (now.frozen || !now.unit->trained) return;
  shard_ += now.unit->elements() / sharers(group);
  tensors_ += tensors;
}

double FullyShardedGroups::gathered_width() const {
  return keys_.gather == FsdpDtype::fp32 ? 4 : writer_.number_bytes();
}

// Experts that not all ranks hold are sharded among fewer, so they are gathered by themselves.
bool FullyShardedGroups::apart(const Visit& visit) const {
  return visit.unit->kind == TensorClass::expert && sends_tokens(writer_.input().strategy);
}

double FullyShardedGroups::sharers(const Group& group) const {
  return group.experts ? writer_.expert_sharers() : writer_.sharers();
}

// peft's wrap policy makes each leaf with trained weights a unit, here those of one adapter.
std::size_t FullyShardedGroups::adapter_group(const Visit& visit) {
  const auto [place, added] = adapter_groups_.try_emplace(visit.instance, groups_.size());
  if (added) {
    groups_.push_back({});
    groups_.back().frozen = visit.frozen;
    groups_.back().inside = true;
    groups_.back().units = static_cast<double>(visit.unit->tensors.size());
  }
  return place->second;
}

// A layer, its experts where they are apart, the embedding, the head; or one root group for both of
// these. A head that borrows its matrix from the embedding cannot be apart from it. Layers that are
// wrapped without their experts leave these to the root.
std::size_t FullyShardedGroups::group_of(const Visit& visit) {
  if (keys_.adapter_units && visit.unit->adapter) return adapter_group(visit);
  const Model& model = writer_.input().model;
  const bool together = keys_.root_group || model.tied_embeddings;
  const bool left = keys_.root_experts && visit.unit->kind == TensorClass::expert;
  const auto layers = static_cast<std::int64_t>(writer_.rank().units.layers.size());
  const bool outside = visit.layer < 0 || visit.layer >= layers || left;
  const std::size_t layer =
      (outside && together) || left ? 0 : static_cast<std::size_t>(visit.layer + 1);
  const std::size_t place = 2 * layer + (apart(visit) || left ? 1 : 0);
  std::vector<std::size_t>& numbers = numbers_[visit.frozen ? 1 : 0];
  if (place >= numbers.size()) numbers.resize(place + 1, no_group);
  if (numbers[place] == no_group) {
    numbers[place] = groups_.size();
    groups_.push_back({});
    groups_.back().frozen = visit.frozen;
    groups_.back().outside = outside;
    groups_.back().experts = apart(visit);
    groups_.back().inside = apart(visit) || left;
  }
  return numbers[place];
}

// Recomputation and backward of a layer share one gather: it is freed after its backward. Experts
// are called inside their layer, which goes on behind them. The loss is none of the model: a
// forward call ends before it, a backward one begins behind it.
void FullyShardedGroups::add_call(std::size_t visit, const Visit& now) {
  const Phase phase = now.phase == Phase::recompute ? Phase::backward : now.phase;
  const std::size_t group = group_of(now);
  const auto same = [&](std::size_t call) {
    return call < calls_.size() && calls_[call].group == group && calls_[call].phase == phase;
  };
  const bool inside = groups_[group].inside;
  const bool again = inside && !call_of_.empty() && same(calls_.size() - 1);
  if (!again && (inside || !same(open_))) {
    const std::size_t first = now.unit->role == Role::loss ? visit + 1 : visit;
    calls_.push_back({first, first, group, phase, false});
    if (!inside) open_ = calls_.size() - 1;
  }
  const std::size_t call = inside ? calls_.size() - 1 : open_;
  if (now.unit->role != Role::loss) calls_[call].last = calls_[open_].last = visit;
  call_of_.push_back(call);
}

double FullyShardedGroups::stored_bytes() const {
  return writer_.input().strategy.master_weights ? 4 : writer_.number_bytes();
}

double FullyShardedGroups::reduce_bytes() const {
  return keys_.reduce == FsdpDtype::fp32 ? 4 : writer_.number_bytes();
}

bool FullyShardedGroups::of_stage() const {
  return writer_.input().strategy.pipeline_parallel.size > 1;
}

// A stage that does not reduce gradients of each micro-batch does so behind all of its passes.
bool FullyShardedGroups::adds_up() const {
  return of_stage() && !keys_.sync_each_batch;
}

// Returns whether a group keeps its parameters behind a call. A group outside the layers keeps them
// from its first to its last use, because the backward pass begins where the forward pass ended.
bool FullyShardedGroups::stays(const Call& call, bool last_micro_batch) const {
  const Group& group = groups_[call.group];
  if (call.again) {
    const bool root = group.outside && (keys_.root_group || writer_.input().model.tied_embeddings);
    const bool head = group.outside && call.first > 0;
    if (root && keys_.reshard_root) return !call.turns;
    return root || head || (!group.frozen && !keys_.reshard_after_forward);
  }
  // Version 1 that does not reshard after forward does so with the reduction only. Stages of a
  // pipeline, of either version, reshard all groups behind their last backward pass.
  if (of_stage()) return !group.frozen;
  return keys_.version == 1 && !keys_.reshard_after_forward && !keys_.sync_each_batch &&
         !last_micro_batch && !group.frozen;
}

// Version 1 lets the host run ahead until two of its units wait for the device to be done with
// them. Both matrices of an adapter are units, which are given up one after the other: the host is
// never further than one adapter ahead.
void FullyShardedGroups::limit_gathers(const Group& group) {
  if (keys_.version != 1 || !keys_.limit_all_gathers) return;
  const auto units = static_cast<std::size_t>(group.units);
  for (std::size_t unit = 0; unit < units && !given_up_.empty(); ++unit) {
    if (given_up_.size() + unit < groups_in_flight) return;
    writer_.host({0}, Cause::gather_latency, "gather_limit", {given_up_.front()});
    given_up_.pop_front();
  }
}

void FullyShardedGroups::gather(std::size_t call) {
  if (call >= calls_.size()) return;
  Group& group = groups_[calls_[call].group];
  if (group.gathered || group.elements <= 0) return;
  limit_gathers(group);
  group.gathered = true;
  group.copied_out = false;
  // Version 2 reuses the buffer of the previous group in the backward pass, and of the one before
  // that in the forward pass, where the host does not wait for it.
  const bool forward = calls_[call].phase == Phase::forward;
  Mark ready = writer_.last_host();
  if (keys_.version != 1)
    if (const auto cut = forward ? copied_out_before_ : copied_out_) ready = *cut;
  if (on_host_) ready = bring_up(group, ready);
  // The shard is cast or copied into the buffer first, on a stream of its own.
  const StepInput& input = writer_.input();
  const double written = input.stack.fsdp_in_place       ? 0
                         : input.strategy.master_weights ? 4 + gathered_width()
                         : keys_.version == 1            ? 0
                                                         : 2 * writer_.number_bytes();
  if (written > 0)
    ready = writer_.beside(Stream::gather, written * group.elements / sharers(group),
                           Cause::gather_bytes, "copy_in", {ready, writer_.last_host()});
  const double bytes = group.gathered_bytes;
  group.arrival = ready;
  for (int unit = 0; unit < group.units; ++unit)
    if (!group.experts || sharers(group) > 1)
      group.arrival = writer_.collective(group.experts ? Plan::expert_gather : Plan::all_gather,
                                         {bytes / group.units}, Stream::gather, Cause::gather_bytes,
                                         "gather_group", {group.arrival});
  if (on_host_) writer_.release(group.arrival, Held::arrived, shard_bytes(group));
  writer_.allocate(group.arrival, cuts_out(group) ? Held::arrived : Held::gathered, bytes);
}

// The shard comes from the host first, in the type that it is stored in, tensor by tensor: the host
// asks for a copy and a cast of each, and goes on. It is cast on the device, where it is until its
// gather is done (torch/distributed/fsdp: FSDPParam.all_gather_inputs of version 2,
// FlatParamHandle._use_low_precision_shard of 1).
Mark FullyShardedGroups::bring_up(const Group& group, Mark ready) {
  const double bytes = shard_bytes(group);
  const double calls = 2 * (keys_.version == 1 ? 1 : group.tensors);
  const Mark asked =
      writer_.host(writer_.scaled(calls * writer_.input().stack.host.plain_launch.value),
                   Cause::offload_transfer, "copies_of_shard");
  const Mark copied = writer_.traffic(Plan::to_device, {bytes}, Cause::offload_transfer,
                                      "shard_to_device", {ready, asked});
  writer_.allocate(copied, Held::arrived, bytes);
  return copied;
}

double FullyShardedGroups::shard_bytes(const Group& group) const {
  const double trained = group.frozen ? 0 : group.trained;
  return (stored_bytes() * trained + frozen_width(writer_.input()) * (group.elements - trained)) /
         sharers(group);
}

// Version 2 cuts tensors out of the flat output, which then goes; so it does where they are cast.
bool FullyShardedGroups::cuts_out(const Group& group) const {
  const bool casts = group.used_bytes < group.gathered_bytes;
  return casts || (keys_.version != 1 && !writer_.input().stack.fsdp_in_place);
}

// Cuts what was gathered into tensors. Version 2 has in the forward pass a name for what it cut
// apart until the next group is cut (FSDPCommContext's all_gather_state), so that the gather of
// that one need not wait.
void FullyShardedGroups::cut_out(Group& group, Phase phase) {
  group.copied_out = true;
  if (!cuts_out(group)) return;
  const double bytes = group.gathered_bytes + group.used_bytes;
  const Mark cut = writer_.run({{"copy_out", KernelClass::memory, 0, bytes, 1}}, false,
                               Cause::gather_bytes, "copy_out");
  copied_out_before_ = copied_out_;
  copied_out_ = cut;
  writer_.allocate(cut, Held::gathered, group.used_bytes);
  if (keys_.version == 1 || phase != Phase::forward) {
    writer_.release(cut, Held::arrived, group.gathered_bytes);
    return;
  }
  writer_.release(cut, Held::arrived, std::exchange(arrived_, group.gathered_bytes));
}

void FullyShardedGroups::before(std::size_t visit) {
  if (calls_[call_of_[visit]].first == visit) begin(call_of_[visit]);
}

void FullyShardedGroups::begin(std::size_t number) {
  const Call& call = calls_[number];
  Group& group = groups_[call.group];
  if (group.elements <= 0) return;
  const auto& host = writer_.input().stack.host;
  const Seconds state_change = group.tensors * host.shard_tensor.value;
  writer_.host(writer_.scaled(group.units * host.shard_group.value + state_change),
               Cause::module_hooks, "unshard");
  gather(number);
  if (!group.copied_out) {
    writer_.compute_after(group.arrival);
    cut_out(group, call.phase);
  }
  const bool prefetch = call.phase == Phase::forward ? keys_.forward_prefetch
                                                     : keys_.backward_prefetch == FsdpPrefetch::pre;
  if (prefetch && number + 1 < calls_.size() && calls_[number + 1].phase == call.phase)
    gather(number + 1);
}

void FullyShardedGroups::reshard(Group& group) {
  const auto& host = writer_.input().stack.host;
  writer_.host(writer_.scaled(group.tensors * host.shard_tensor.value), Cause::module_hooks,
               "reshard");
  writer_.release(writer_.last_compute(), Held::gathered, group.used_bytes);
  group.gathered = false;
  if (keys_.version == 1)
    for (double unit = 0; unit < group.units; ++unit) given_up_.push_back(writer_.last_compute());
}

void FullyShardedGroups::after(std::size_t visit, bool last_micro_batch) {
  if (calls_[call_of_[visit]].last == visit) end(call_of_[visit], last_micro_batch);
}

void FullyShardedGroups::end(std::size_t number, bool last_micro_batch) {
  const Call& call = calls_[number];
  Group& group = groups_[call.group];
  if (group.elements <= 0) return;
  if (!stays(call, last_micro_batch)) reshard(group);
  if (call.phase != Phase::backward) return;
  if (keys_.backward_prefetch == FsdpPrefetch::post) gather(number + 1);
  if (call.again || group.trained <= 0) return;
  if (of_stage() && last_micro_batch) held_back_.push_back(call.group);
  reduce(group, last_micro_batch && !adds_up());
}

// Version 2 copies gradients together and casts them in one kernel; the mean is the collective's.
Mark FullyShardedGroups::copied_in(const Group& group) {
  const double fresh =
      adds_up() ? 0 : writer_.number_bytes();  // else they were added to those that wait
  const double bytes = (fresh + reduce_bytes()) * group.trained + group.unreduced;
  return writer_.run({{"copy_in", KernelClass::memory, 0, bytes, 1}}, true, Cause::gradient_reduce,
                     "copy_in");
}

// Version 1: its parameters are slices of a flat tensor, and so the backward pass of slicing puts
// their gradients together. Then the flat gradient is cast, and divided by part of the number of
// ranks before it is summed up: on a stream of its own, at the cost of what runs beside it.
Mark FullyShardedGroups::flattened(const Group& group) {
  const double flat = writer_.number_bytes() * group.trained,
               bytes = reduce_bytes() * group.trained;
  std::vector<KernelRow> rows{memory("flatten", 2 * flat + group.unreduced, 1)};
  if (reduce_bytes() > writer_.number_bytes()) rows.push_back(memory("cast", flat + bytes, 1));
  if (sharers(group) > 1) rows.push_back(memory("divide", 2 * bytes, 1));
  return writer_.run(rows, true, Cause::gradient_reduce, "flatten");
}

// Puts gradients together, scatters them, then sums them up among the copies of the shard.
void FullyShardedGroups::reduce(Group& group, bool last_micro_batch) {
  const auto& host = writer_.input().stack.host;
  const double bytes = reduce_bytes() * group.trained;
  if (!keys_.sync_each_batch && !last_micro_batch) {
    const double kept = keys_.version == 1 ? writer_.number_bytes() * group.trained : bytes;
    if (group.unreduced <= 0) writer_.allocate(writer_.last_compute(), Held::gradients, kept);
    group.unreduced = kept;
    return;
  }
  writer_.host(writer_.scaled(group.tensors * host.shard_tensor.value), Cause::module_hooks,
               "reduce_hooks");
  // Version 2 has one buffer: the device waits until the last reduction has left it.
  if (keys_.version != 1 && reduced_) writer_.compute_after(*reduced_);
  give_up_input();
  const Mark copied = keys_.version == 1 ? flattened(group) : copied_in(group);
  reduced_ = copied;
  for (int unit = 0; unit < group.units; ++unit)
    if (!group.experts || sharers(group) > 1)
      reduced_ = writer_.collective(group.experts ? Plan::expert_scatter : Plan::reduce_scatter,
                                    {bytes / group.units}, Stream::reduce, Cause::gradient_reduce,
                                    "reduce_group", {*reduced_});
  writer_.allocate(copied, Held::reduce_input, bytes);
  if (keys_.version == 1)
    writer_.release(*reduced_, Held::reduce_input, bytes);
  else
    input_ = bytes;
  writer_.release(*reduced_, Held::gradients, group.unreduced);
  group.unreduced = 0;
  const double shard = group.trained / sharers(group);
  Mark summed = *reduced_;
  if (writer_.mesh().replicas > 1)
    summed = writer_.collective(Plan::replica_reduce, {reduce_bytes() * shard}, Stream::replicas,
                                Cause::gradient_reduce, "reduce_replicas", {summed});
  keep(group, summed);
}

// Cast to the dtype of the parameter and put to, or added to, the gradient that is there.
void FullyShardedGroups::keep(Group& group, Mark summed) {
  const double shard = group.trained / sharers(group);
  kept_ = writer_.beside(writer_.mesh().replicas > 1 ? Stream::replicas : Stream::reduce,
                         (reduce_bytes() + 2 * stored_bytes()) * shard, Cause::gradient_reduce,
                         "keep_gradient", {summed});
  if (on_host_) return take_down(group, *kept_);
  if (std::exchange(group.summed, true)) return;
  group.kept = stored_bytes() * shard;
  writer_.allocate(*kept_, Held::own_gradients, group.kept);
}

// The first gradient is copied to pinned memory while the host goes on. Where one is there already
// the host waits for the copy, and adds: it reads both and writes one (foreach_reduce of
// torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py).
void FullyShardedGroups::take_down(Group& group, Mark gradient) {
  const double bytes = stored_bytes() * group.trained / sharers(group);
  kept_ = writer_.traffic(Plan::to_host, {bytes}, Cause::offload_transfer, "gradient_to_host",
                          {gradient});
  writer_.allocate(gradient, Held::own_gradients, bytes);
  writer_.release(*kept_, Held::own_gradients, bytes);
  if (!std::exchange(group.summed, true)) return;
  writer_.host({0}, Cause::offload_transfer, "gradient_wait", {*kept_});
  const Mark added = writer_.traffic(Plan::cpu_update, {3 * bytes}, Cause::cpu_optimizer,
                                     "add_gradient", {*kept_});
  writer_.host({0}, Cause::cpu_optimizer, "gradient_added", {added});
}

// Version 2 has a name for it until the next reduction begins (FSDPCommContext's
// reduce_scatter_state).
void FullyShardedGroups::give_up_input() {
  writer_.release(writer_.last_compute(), Held::reduce_input, std::exchange(input_, 0));
}

void FullyShardedGroups::finish_backward(bool) {
  std::sort(held_back_.begin(), held_back_.end());
  for (const std::size_t number : held_back_) {
    reshard(groups_[number]);
    if (adds_up()) reduce(groups_[number], true);
  }
  held_back_.clear();
  if (kept_ && on_host_)
    writer_.host({0}, Cause::offload_transfer, "gradients_on_host", {*kept_});
  else if (kept_)
    writer_.compute_after(*kept_);
  give_up_input();
  writer_.release(writer_.last_compute(), Held::arrived, std::exchange(arrived_, 0));
  kept_.reset();
  reduced_.reset();
  copied_out_.reset();
  copied_out_before_.reset();
}

void FullyShardedGroups::step() {
  const Mark own = own_norm();
  finish_step(
      writer_.collective(Plan::signal, {4}, Stream::reduce, Cause::optimizer, "norm", {own}));
}

Mark FullyShardedGroups::own_norm() {
  writer_.context = {Phase::optimizer, -1, -1};
  writer_.host(writer_.scaled(tensors_ * writer_.input().stack.host.shard_tensor.value),
               Cause::optimizer, "norm_of_tensors");
  if (on_host_) {
    const Mark norm = writer_.traffic(Plan::cpu_update, {stored_bytes() * shard_},
                                      Cause::cpu_optimizer, "norm_on_host");
    return writer_.host({0}, Cause::cpu_optimizer, "norm_done", {norm});
  }
  return writer_.run({{"norm", KernelClass::memory, 0, stored_bytes() * shard_, 4}}, false,
                     Cause::optimizer, "gradient_norm");
}

void FullyShardedGroups::finish_step(std::optional<Mark> norm) {
  const StepInput& input = writer_.input();
  const Seconds tensors = writer_.scaled(tensors_ * input.stack.host.shard_tensor.value);
  writer_.context = {Phase::optimizer, -1, -1};
  if (norm) writer_.compute_after(*norm);
  if (on_host_) {
    update_on_host(tensors, norm.value_or(writer_.last_host()));
    for (Group& group : groups_) group.summed = false;
    return;
  }
  // Moments and parameters are read and written, the gradient is scaled and read.
  const double traffic = update_traffic(
      writer_.rank(), 2 * passed_state_bytes(writer_.rank()) + (2 + 3) * stored_bytes());
  orthogonalise(writer_);
  writer_.host(tensors, Cause::optimizer, "update_of_tensors");
  const double largest = writer_.rank().tensors.largest / writer_.sharers();
  const UpdateCost cost = update_cost(writer_.rank(), {shard_, tensors_, largest});
  const Mark update =
      writer_.run({update_row(cost, traffic * shard_, 7)}, false, Cause::optimizer, "update");
  hold_while_updating(writer_, update, cost);
  stop_behind_update(writer_, tensors_);
  for (Group& group : groups_) {
    writer_.release(update, Held::own_gradients, group.kept);
    group.kept = 0;
    group.summed = false;
  }
  writer_.drain({0}, Cause::optimizer, "step_done");
}

// The gradient is scaled first, read and written. The node's file has the cost of states in 32
// bits.
void FullyShardedGroups::update_on_host(Seconds tensors, Mark ready) {
  writer_.host(tensors, Cause::optimizer, "update_of_tensors", {ready});
  const double wide = stored_bytes() / 4;
  update_shard_on_host(writer_, wide * shard_, 2 * 4, writer_.last_host());
  writer_.drain({0}, Cause::optimizer, "step_done");
}

}  // namespace stepsim
