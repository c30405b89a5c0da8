#include <algorithm>
#include <cmath>
#include <limits>

#include "workloads/program/activations.hpp"
#include "workloads/sharding/sharding.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;                // bytes of a 16-bit number
constexpr double quantized_block = 8192;  // numbers with one scale; DeepSpeed: below 16k
constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
constexpr std::size_t fetches_in_flight = 2;  // DeepSpeed blocks the host on the one before

}  // namespace

Zero3::Zero3(StepWriter& writer, const std::vector<Visit>& visits)
    : writer_(writer), visits_(visits) {
  std::uint32_t instances = 0;
  before_.assign(1, 0);
  for (const Visit& visit : visits) {
    before_.push_back(before_.back() + gathered_elements(*visit.unit));
    instances = std::max(instances, visit.instance + 1);
    if (visit.phase != Phase::forward || visit.frozen) continue;
    if (visit.unit->trained) {
      parameters_ += visit.unit->elements();
      tensors_ += static_cast<double>(visit.unit->tensors.size());
    }
    for (const double elements : visit.unit->tensors)
      if (elements <= writer.input().strategy.zero.persistence_threshold)
        persistent_.push_back(elements);
  }
  find_modules();
  const StepInput& input = writer.input();
  far_ = parameters_on_drives(input);
  here_ = states_on_device(input);
  const Gpu& gpu = input.cluster.gpu;
  const double usable = (gpu.memory.usable.value - gpu.memory.library.value).value /
                        (1 + slack_of(input).value.value);
  room_ = usable - resident_of(input).in(Pool::device)-activation_bytes(input, visits) -
          half * std::min(input.strategy.zero.reduce_bucket, parameters_);
  state_.assign(instances, State::sharded);
  arrival_.assign(instances, Mark{});
  batch_.assign(instances, 0);
  scheduled_.assign(instances, 0);
  next_use_.assign(visits.size(), never);
  std::vector<std::size_t> later(instances, never);
  for (std::size_t i = visits.size(); i-- > 0;) {
    next_use_[i] = later[visits[i].instance];
    later[visits[i].instance] = i;
  }
}

// A unit is a module to fetch and release, or under a leaf module all of it together.
void Zero3::find_modules() {
  const bool leaf = writer_.input().strategy.zero.leaf_modules;
  for (std::size_t i = 0; i < visits_.size(); ++i) {
    const Visit& visit = visits_[i];
    const bool goes_on = leaf && i > 0 && visit.unit->in_moe && visits_[i - 1].unit->in_moe &&
                         visit.layer == visits_[i - 1].layer && visit.phase == visits_[i - 1].phase;
    begin_.push_back(goes_on ? begin_.back() : i);
  }
  end_.assign(visits_.size(), visits_.size());
  for (std::size_t i = visits_.size(); i-- > 1;)
    end_[i - 1] = begin_[i] == begin_[i - 1] ? end_[i] : i;
}

double Zero3::gathered_elements(const Unit& unit) const {
  const double threshold = writer_.input().strategy.zero.persistence_threshold;
  double sum = 0;
  for (const auto* tensors : {&unit.tensors, &unit.borrowed})
    for (const double elements : *tensors)
      if (elements > threshold) sum += elements;
  return sum;
}

std::size_t Zero3::gathered_tensors(const Unit& unit) const {
  const double threshold = writer_.input().strategy.zero.persistence_threshold;
  const auto large = [&](double elements) { return elements > threshold; };
  return static_cast<std::size_t>(std::count_if(unit.tensors.begin(), unit.tensors.end(), large) +
                                  std::count_if(unit.borrowed.begin(), unit.borrowed.end(), large));
}

// The host runs ahead of the device, so tensors that were given up long ago may still be in use.
// When the device has no room left, the allocator makes the host wait for the oldest of them.
void Zero3::make_room(double bytes) {
  while (held_ + bytes > room_ && !given_up_.empty()) {
    writer_.host({0}, Cause::gather_latency, "allocator_wait", {given_up_.front().last_use});
    held_ -= given_up_.front().bytes;
    given_up_.pop_front();
  }
  held_ += bytes;
}

void Zero3::give_up(std::uint32_t instance, double bytes) {
  state_[instance] = State::sharded;
  given_up_.push_back({writer_.last_compute(), bytes});
  writer_.release(writer_.last_compute(), "gathered", bytes);
}

// One all-gather into one buffer.
void Zero3::fetch(const std::vector<Wanted>& wanted, bool coalesced) {
  if (wanted.empty()) return;
  double elements = 0;
  for (const Wanted& each : wanted) elements += each.elements;
  const StepInput& input = writer_.input();
  make_room(half * elements);
  // Without a stream of its own a gather waits for the kernels that were launched before it.
  Mark ready = input.strategy.zero.overlap_comm ? writer_.last_host() : writer_.last_compute();
  // Offloaded parameters come up from host memory first, every rank its shard.
  if (input.strategy.parameter_place != Offload::none) ready = to_device(elements, ready);
  if (input.strategy.zero.stops_at_fetches) ready = clear_buffer(elements, ready);
  const Mark gather = gather_shards(elements, ready);
  writer_.allocate(gather, "gathered", half * elements);
  uncut_.push_back(coalesced ? half * elements : 0);
  for (const Wanted& each : wanted) {
    state_[each.instance] = State::in_flight;
    arrival_[each.instance] = gather;
    batch_[each.instance] = uncut_.size() - 1;
  }
  live_ += elements;
}

// Releases that stop at fetches fill the buffer with zeros and wait for the device before they ask
// for the gather.
Mark Zero3::clear_buffer(double elements, Mark ready) {
  const Mark cleared =
      writer_.beside(Stream::gather, half * elements, Cause::gather_bytes, "clear_buffer", {ready});
  stop_for(cleared);
  return writer_.last_host();
}

// Everything that the device was given is done, reductions and this among it.
void Zero3::stop_for(Mark mark) {
  writer_.host({0}, Cause::gather_latency, "fetch_wait", {mark});
  if (!reductions_.empty())
    writer_.host({0}, Cause::gradient_reduce, "reduce_wait", {reductions_.back()});
  writer_.drain(writer_.input().stack.host.sync.value, Cause::gather_latency, "synchronize");
  fetches_.clear();
  reductions_.clear();
  for (const GivenUp& each : given_up_) held_ -= each.bytes;
  given_up_.clear();
}

// A rank's own part; what of it is on drives is read first, as soon as somebody asks for it.
Mark Zero3::to_device(double elements, Mark ready) {
  const double bytes = half * elements / writer_.sharers();
  if (far_ > 0)
    ready = writer_.traffic(World::from_drive, {far_ * bytes}, Cause::offload_transfer,
                            "parameters_from_drive", {ready});
  return writer_.traffic(World::to_device, {bytes}, Cause::offload_transfer, "parameters_to_device",
                         {ready});
}

// After the forward pass a secondary partition, if there is one, is nearer. Quantised, 8 bits
// travel with a scale for each block of them.
Mark Zero3::gather_shards(double elements, Mark ready) {
  const ZeroKeys& keys = writer_.input().strategy.zero;
  const bool again = writer_.context.phase != Phase::forward;
  const bool near = keys.hpz > 1 && again;
  const World world = near ? World::secondary_gather : World::all_gather;
  const double mine =
      elements / (near ? static_cast<double>(keys.hpz) : writer_.sharers());  // of the shard
  writer_.spend(writer_.scaled(writer_.input().stack.host.gather_calls.value));
  const auto gather = [&](double bytes, std::string_view name) {
    return writer_.collective(world, {bytes}, Stream::gather, Cause::gather_bytes, name, {ready});
  };
  if (!keys.quantized_weights) return gather(half * elements, "gather_parameters");
  ready =
      writer_.beside(Stream::gather, (half + 1) * mine, Cause::gather_bytes, "quantize", {ready});
  gather(elements, "gather_parameters");
  const Mark arrived = gather(4 * elements / quantized_block, "gather_scales");
  return writer_.beside(Stream::gather, (1 + half) * elements, Cause::gather_bytes, "dequantize",
                        {arrived});
}

// The next kernel needs it. Out of a coalesced gather all tensors are then cut at once; until that
// is done they are there twice. The host runs at most two such waits ahead.
void Zero3::await(std::uint32_t instance) {
  for (; fetches_.size() > fetches_in_flight; fetches_.pop_front()) {
    if (awaited_ && *awaited_ >= fetches_.front()) continue;  // it has been there before
    awaited_ = fetches_.front();
    writer_.host({0}, Cause::gather_latency, "fetch_limit", {fetches_.front()});
  }
  fetches_.push_back(arrival_[instance]);
  if (fetches_.size() < 2 || fetches_.end()[-2] != arrival_[instance])
    writer_.compute_after(arrival_[instance]);
  state_[instance] = State::gathered;
  double& uncut = uncut_[batch_[instance]];
  if (uncut > 0) make_room(uncut);
  cut_ += uncut;
  uncut = 0;
}

// The next tensors in recorded order, until the bucket is full, as one gather.
void Zero3::prefetch(std::size_t visit) {
  const ZeroKeys& keys = writer_.input().strategy.zero;
  if (keys.stops_at_fetches) return;
  prefetched_ = std::max(prefetched_, visit + 1);
  const double room = std::min(keys.prefetch_bucket, keys.max_live - live_);
  std::vector<Wanted> wanted;
  double elements = 0;
  while (prefetched_ < visits_.size() && elements < room) {
    const Visit& next = visits_[prefetched_];
    scheduled_[next.instance] = prefetched_++;
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
  const bool leaf = writer_.input().strategy.zero.leaf_modules && now.unit->in_moe;
  if (!leaf && now.unit->owners + now.unit->plain_modules == 0) return;  // a function: no hooks
  Seconds hooks = static_cast<double>(now.unit->plain_modules) * host.plain_hook.value;
  hooks += static_cast<double>(now.unit->owners) * host.module_hook.value;
  if (leaf) {  // one hook, and a loop over its tensors
    hooks = static_cast<double>(now.unit->tensors.size()) * host.leaf_tensor.value;
    if (begin_[visit] == visit) hooks += host.plain_hook.value;
  }
  writer_.host(hooks / core, Cause::module_hooks, "fetch_release");
  if (begin_[visit] != visit) return;
  if (leaf)
    fetch_leaf(visit);
  else
    fetch_module(now);
  prefetch(end_[visit] - 1);
}

void Zero3::fetch_module(const Visit& now) {
  const double needed = gathered_elements(*now.unit);
  const std::size_t tensors = gathered_tensors(*now.unit);
  if (tensors == 0 || state_[now.instance] == State::gathered) return;
  if (state_[now.instance] == State::in_flight) {
    for (std::size_t i = 0; i < tensors; ++i) await(now.instance);
    return;
  }
  // Modules with a tensor each gather one by one.
  const auto apart = std::min(static_cast<std::size_t>(now.unit->owners), tensors);
  const bool stops = writer_.input().strategy.zero.stops_at_fetches;
  for (std::size_t i = 0; i < apart; ++i) {
    fetch({{now.instance, needed / static_cast<double>(apart)}}, !stops && tensors > apart);
    await(now.instance);
  }
  if (stops) stop_for(arrival_[now.instance]);
}

void Zero3::fetch_leaf(std::size_t first) {
  std::vector<Wanted> wanted;
  for (std::size_t i = first; i < end_[first]; ++i)
    if (const double needed = gathered_elements(*visits_[i].unit);
        needed > 0 && state_[visits_[i].instance] == State::sharded)
      wanted.push_back({visits_[i].instance, needed});
  fetch(wanted, true);
  for (std::size_t i = first; i < end_[first]; ++i)
    if (state_[visits_[i].instance] == State::in_flight) await(visits_[i].instance);
}

// Called again before `max_reuse` other elements are, or passed over by the prefetch because it was
// still there.
bool Zero3::reused_soon(std::size_t visit) const {
  const std::size_t next = next_use_[visit];
  if (next == never || writer_.input().strategy.zero.stops_at_fetches) return false;
  return scheduled_[visits_[visit].instance] > visit ||
         before_[begin_[next]] - before_[end_[visit]] < writer_.input().strategy.zero.max_reuse;
}

void Zero3::release_module(std::size_t last) {
  for (std::size_t i = begin_[last]; i <= last; ++i) {
    const double needed = gathered_elements(*visits_[i].unit);
    if (needed <= 0 || reused_soon(i)) continue;
    live_ -= needed;
    give_up(visits_[i].instance, half * needed);
  }
}

void Zero3::after(std::size_t visit, bool last_micro_batch) {
  const Visit& now = visits_[visit];
  if (cut_ > 0) {
    writer_.allocate(writer_.last_compute(), "gathered", cut_);
    writer_.release(writer_.last_compute(), "gathered", cut_);
    given_up_.push_back({writer_.last_compute(), cut_});
    cut_ = 0;
  }
  if (end_[visit] == visit + 1) release_module(visit);
  if (now.phase != Phase::backward || !now.unit->trained) return;
  const ZeroKeys& keys = writer_.input().strategy.zero;
  const double core = writer_.input().cluster.node.host.core_speed.value.value;
  const Mark made = writer_.last_compute();
  for (const double elements : now.unit->tensors) {
    writer_.allocate(made, "gradients", half * elements);
    writer_.host(gradient_hook(writer_.input(), tensors_) / core, Cause::module_hooks,
                 "gradient_hook");
    if (bucket_ > 0 && bucket_ + elements > keys.reduce_bucket) reduce_bucket(last_micro_batch);
    bucket_ += elements;
    waiting_.push_back({elements, now.unit->kind == TensorClass::norm});
    // Too large for the bucket: it goes as it is.
    const Mark used = elements > keys.reduce_bucket
                          ? reduce_bucket(last_micro_batch)
                          : on_reduce_stream(2 * half * elements, 1, "bucket_copy", made);
    writer_.release(used, "gradients", half * elements);
  }
}

}  // namespace stepsim
