#include <algorithm>
#include <cmath>
#include <limits>

#include "workloads/sharding.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number
constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
constexpr std::size_t fetches_in_flight = 2;  // DeepSpeed blocks the host on the one before

}  // namespace

Zero3::Zero3(StepWriter& writer, const std::vector<Visit>& visits)
    : writer_(writer), visits_(visits) {
  std::uint32_t instances = 0;
  double elements = 0;
  for (const Visit& visit : visits) {
    before_.push_back(elements);
    elements += gathered_elements(*visit.unit);
    instances = std::max(instances, visit.instance + 1);
    if (visit.phase != Phase::forward || visit.frozen) continue;
    parameters_ += visit.unit->elements();
    tensors_ += static_cast<double>(visit.unit->tensors.size());
  }
  state_.assign(instances, State::sharded);
  arrival_.assign(instances, Mark{});
  copies_.assign(instances, 0);
  next_use_.assign(visits.size(), never);
  std::vector<std::size_t> later(instances, never);
  for (std::size_t i = visits.size(); i-- > 0;) {
    next_use_[i] = later[visits[i].instance];
    later[visits[i].instance] = i;
  }
}

double Zero3::gathered_elements(const Unit& unit) const {
  double sum = 0;
  for (const double elements : unit.tensors)
    if (elements > writer_.input().strategy.zero.persistence_threshold) sum += elements;
  return sum;
}

std::size_t Zero3::gathered_tensors(const Unit& unit) const {
  const double threshold = writer_.input().strategy.zero.persistence_threshold;
  return static_cast<std::size_t>(std::count_if(unit.tensors.begin(), unit.tensors.end(),
                                                [&](double e) { return e > threshold; }));
}

// One all-gather. A coalesced one needs a flat buffer beside the tensors that are cut out of it.
void Zero3::fetch(const std::vector<Wanted>& wanted, bool coalesced) {
  if (wanted.empty()) return;
  while (fetches_.size() > fetches_in_flight) {
    writer_.host({0}, Cause::gather_latency, "fetch_limit", {fetches_.front()});
    fetches_.pop_front();
  }
  double elements = 0;
  for (const Wanted& each : wanted) elements += each.elements;
  // Offloaded parameters come up from host memory first, every rank its shard.
  Mark ready = writer_.last_host();
  if (writer_.input().strategy.parameter_place == Offload::cpu)
    ready = writer_.traffic(World::to_device, OpKind::transfer, {half * elements / writer_.ranks()},
                            Stream::h2d, Cause::offload_transfer, "parameters_to_device");
  const Mark gather = writer_.collective(World::all_gather, {half * elements}, Stream::gather,
                                         Cause::gather_bytes, "gather_parameters", {ready});
  fetches_.push_back(gather);
  const double copies = coalesced ? 2 : 1;
  writer_.allocate(gather, "gathered", copies * half * elements);
  for (const Wanted& each : wanted) {
    if (state_[each.instance] == State::sharded) copies_[each.instance] = 0;
    state_[each.instance] = State::in_flight;
    arrival_[each.instance] = gather;
    copies_[each.instance] += copies * half * each.elements;
  }
  live_ += elements;
}

// The next tensors in recorded order, until the bucket is full, as one gather.
void Zero3::prefetch(std::size_t visit) {
  const ZeroKeys& keys = writer_.input().strategy.zero;
  prefetched_ = std::max(prefetched_, visit + 1);
  const double room = std::min(keys.prefetch_bucket, keys.max_live - live_);
  std::vector<Wanted> wanted;
  double elements = 0;
  while (prefetched_ < visits_.size() && elements < room) {
    const Visit& next = visits_[prefetched_++];
    const double needed = gathered_elements(*next.unit);
    const bool listed = std::any_of(wanted.begin(), wanted.end(), [&](const Wanted& each) {
      return each.instance == next.instance;
    });
    if (needed <= 0 || state_[next.instance] != State::sharded || listed) continue;
    wanted.push_back({next.instance, needed});
    elements += needed;
  }
  fetch(wanted, true);
}

void Zero3::before(std::size_t visit) {
  const Visit& now = visits_[visit];
  const auto& host = writer_.input().stack.host;
  const double core = writer_.input().cluster.node.host.core_speed.value.value;
  const bool leaf = now.unit->expert && writer_.input().strategy.zero.leaf_modules;
  const double owners = static_cast<double>(now.unit->tensors.size());
  // A leaf module is fetched once for all its tensors, others module by module.
  Seconds hooks = static_cast<double>(now.unit->plain_modules) * host.plain_hook.value;
  hooks += owners * (leaf ? host.leaf_tensor : host.module_hook).value;
  writer_.host(hooks / core, Cause::module_hooks, "fetch_release");
  const double needed = gathered_elements(*now.unit);
  if (needed <= 0) return;
  if (state_[now.instance] == State::sharded) {
    const std::size_t tensors = gathered_tensors(*now.unit);
    // Modules with a tensor each gather one by one; the unit's matrices count as such.
    if (tensors > 1 && !leaf && now.unit->kind == TensorClass::expert) {
      for (std::size_t i = 0; i < tensors; ++i)
        fetch({{now.instance, needed / static_cast<double>(tensors)}}, false);
    } else {
      fetch({{now.instance, needed}}, tensors > 1);
    }
  }
  if (state_[now.instance] == State::in_flight) writer_.compute_after(arrival_[now.instance]);
  state_[now.instance] = State::gathered;
  prefetch(visit);
}

bool Zero3::reused_soon(std::size_t visit) const {
  const std::size_t next = next_use_[visit];
  const ZeroKeys& keys = writer_.input().strategy.zero;
  return next != never && live_ <= keys.max_live && before_[next] - before_[visit] < keys.max_reuse;
}

void Zero3::after(std::size_t visit, bool) {
  const Visit& now = visits_[visit];
  const double needed = gathered_elements(*now.unit);
  if (needed > 0 && !reused_soon(visit)) {
    state_[now.instance] = State::sharded;
    live_ -= needed;
    writer_.release(writer_.last_compute(), "gathered", copies_[now.instance]);
  }
  if (now.phase != Phase::backward) return;
  const ZeroKeys& keys = writer_.input().strategy.zero;
  const double core = writer_.input().cluster.node.host.core_speed.value.value;
  for (const double elements : now.unit->tensors) {
    writer_.host(writer_.input().stack.host.gradient_hook.value / core, Cause::module_hooks,
                 "gradient_hook");
    if (bucket_ > 0 && bucket_ + elements > keys.reduce_bucket) reduce_bucket();
    writer_.run({{"bucket_copy", KernelClass::memory, 0, 2 * half * elements, 1}}, true,
                Cause::gradient_reduce, "bucket_copy");
    bucket_ += elements;
    if (elements > keys.reduce_bucket) reduce_bucket();
  }
}

void Zero3::reduce_bucket() {
  const Bytes bytes{half * bucket_};
  writer_.run({{"interleave", KernelClass::memory, 0, 3 * half * bucket_, 2}}, true,
              Cause::gradient_reduce, "interleave");
  const Mark reduced =
      writer_.collective(World::reduce_scatter, bytes, Stream::reduce, Cause::gradient_reduce,
                         "reduce_bucket", {writer_.last_compute()});
  writer_.allocate(reduced, "bucket", bytes.value);
  writer_.release(reduced, "bucket", bytes.value);
  if (!writer_.input().strategy.zero.overlap_comm) writer_.compute_after(reduced);
  if (writer_.input().strategy.optimizer_place == Offload::cpu)
    to_host(bucket_ / writer_.ranks(), reduced);
  bucket_ = 0;
}

// A partition of gradients goes down in 16 bits, comes back up for its norm, and goes down again in
// fp32: eight bytes an element over the host link, behind the backward pass.
void Zero3::to_host(double elements, Mark reduced) {
  const auto copy = [&](World way, double bytes, Stream stream, Mark ready) {
    return writer_.traffic(way, OpKind::transfer, {bytes * elements}, stream,
                           Cause::offload_transfer, "gradient_partition", {ready});
  };
  const Mark down = copy(World::to_host, half, Stream::d2h, reduced);
  const Mark up = copy(World::to_device, half, Stream::h2d, down);
  copy(World::to_host, 4, Stream::d2h, up);
}

void Zero3::finish_backward(bool) {
  if (bucket_ > 0) reduce_bucket();
  // What is still gathered when the last gradients are reduced goes now.
  for (std::uint32_t instance = 0; instance < state_.size(); ++instance) {
    if (state_[instance] == State::sharded) continue;
    writer_.release(writer_.last_compute(), "gathered", copies_[instance]);
    state_[instance] = State::sharded;
  }
  live_ = 0;
  prefetched_ = 0;
  fetches_.clear();
  writer_.context.layer = -1;
  writer_.drain(writer_.input().stack.host.sync.value, Cause::gradient_reduce, "synchronize");
}

// Sub-group by sub-group: a norm that everybody waits for, a loop over all tensors of the model to
// clear their gradients, the update. Sub-groups of size 0 are one tensor each, so the loop is
// quadratic in the number of tensors.
void Zero3::step() {
  const StepInput& input = writer_.input();
  const double core = input.cluster.node.host.core_speed.value.value;
  const double shard = parameters_ / writer_.ranks();
  const double size = input.strategy.zero.sub_group;
  const double groups = size <= 0 ? tensors_ : std::max(1.0, std::ceil(shard / size));
  const double part = shard / groups;
  writer_.context = {Phase::optimizer, -1, -1};
  for (double i = 0; i < groups; ++i) {
    writer_.run({{"norm", KernelClass::memory, 0, half * part, 3 * tensors_ / groups}}, false,
                Cause::optimizer, "gradient_norm");
    const Mark norm = writer_.collective(World::signal, {8}, Stream::reduce, Cause::optimizer,
                                         "norm", {writer_.last_compute()});
    writer_.compute_after(norm);
  }
  for (double i = 0; i < groups; ++i) {
    writer_.host(
        (input.stack.host.sub_group.value + tensors_ * input.stack.host.clear_visit.value) / core,
        Cause::optimizer, "sub_group");
    if (input.strategy.optimizer_place == Offload::cpu) {
      const Mark updated = update_shard_on_host(writer_, part);
      if (input.strategy.parameter_place == Offload::none)
        writer_.traffic(World::to_device, OpKind::transfer, {half * part}, Stream::h2d,
                        Cause::offload_transfer, "parameters_to_device", {updated});
      continue;
    }
    const Mark update = writer_.run({{"flatten", KernelClass::memory, 0, (2 * half + 4) * part, 2},
                                     {"update", KernelClass::memory, 0,
                                      optimizer_traffic_bytes(input.strategy.optimizer) * part, 4}},
                                    false, Cause::optimizer, "update");
    writer_.allocate(update, "optimizer_temporary", (half + 4) * part);
    writer_.release(update, "optimizer_temporary", (half + 4) * part);
  }
  writer_.drain({0}, Cause::optimizer, "step_done");
}

}  // namespace stepsim
