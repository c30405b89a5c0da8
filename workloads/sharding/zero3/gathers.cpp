#include "workloads/sharding/zero3/gathers.hpp"

#include <algorithm>
#include <limits>

#include "workloads/program/activations.hpp"
#include "workloads/sharding/resident.hpp"
#include "workloads/sharding/states.hpp"

namespace stepsim {
namespace {

constexpr double quantized_block = 8192;  // numbers with one scale; DeepSpeed: below 16k
constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
constexpr std::size_t fetches_in_flight = 2;  // DeepSpeed blocks the host on the one before

// Bytes of a device for what is gathered, while everything else is there, too.
double room_for_gathers(const RankPart& rank, const std::vector<Visit>& visits,
                        const TrainedTensors& trained) {
  const StepInput& input = rank.input;
  const Gpu& gpu = input.cluster.gpu;
  const double usable = (gpu.memory.usable.value - gpu.memory.library.value).value /
                        (1 + slack_of(input).value.value);
  return usable - resident_of(rank).in(Pool::device)-activation_bytes(input, visits) -
         input.strategy.precision.numbers *
             std::min(input.strategy.zero.reduce_bucket, trained.parameters);
}

}  // namespace

Zero3Gathers::Zero3Gathers(StepWriter& writer, const std::vector<Visit>& visits,
                           const TrainedTensors& trained, Zero3Gradients& gradients)
    : writer_(writer),
      visits_(visits),
      gradients_(gradients),
      room_(room_for_gathers(writer.rank(), visits, trained)),
      on_drives_(parameters_on_drives(writer.rank())) {
  std::size_t instances = 0;
  before_.assign(1, 0);
  for (const Visit& visit : visits) {
    before_.push_back(before_.back() + gathered_elements(*visit.unit));
    instances = std::max<std::size_t>(instances, visit.instance + 1);
  }
  find_modules();
  find_next_uses(instances);
  state_.assign(instances, State::sharded);
  arrival_.assign(instances, Mark{});
  batch_.assign(instances, 0);
  scheduled_.assign(instances, 0);
}

void Zero3Gathers::find_next_uses(std::size_t instances) {
  next_use_.assign(visits_.size(), never);
  std::vector<std::size_t> later(instances, never);
  for (std::size_t i = visits_.size(); i-- > 0;) {
    next_use_[i] = later[visits_[i].instance];
    later[visits_[i].instance] = i;
  }
}

// A unit is a module to fetch and release, or under a leaf module all of it together.
void Zero3Gathers::find_modules() {
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

double Zero3Gathers::gathered_elements(const Unit& unit) const {
  const double threshold = writer_.input().strategy.zero.persistence_threshold;
  double sum = 0;
  for (const auto* tensors : {&unit.tensors, &unit.borrowed})
    for (const double elements : *tensors)
      if (elements > threshold) sum += elements;
  return sum;
}

std::size_t Zero3Gathers::gathered_tensors(const Unit& unit) const {
  const double threshold = writer_.input().strategy.zero.persistence_threshold;
  const auto large = [&](double elements) { return elements > threshold; };
  return static_cast<std::size_t>(std::count_if(unit.tensors.begin(), unit.tensors.end(), large) +
                                  std::count_if(unit.borrowed.begin(), unit.borrowed.end(), large));
}

// The host runs ahead of the device, so tensors that were given up long ago may still be in use.
// When the device has no room left, the allocator makes the host wait for the oldest of them.
void Zero3Gathers::make_room(double bytes) {
  while (held_ + bytes > room_ && !given_up_.empty()) {
    writer_.host({0}, Cause::gather_latency, "allocator_wait", {given_up_.front().last_use});
    held_ -= given_up_.front().bytes;
    given_up_.pop_front();
  }
  held_ += bytes;
}

void Zero3Gathers::give_up(std::uint32_t instance, double bytes) {
  state_[instance] = State::sharded;
  given_up_.push_back({writer_.last_compute(), bytes});
  writer_.release(writer_.last_compute(), Held::gathered, bytes);
}

// Fetches by one all-gather into one buffer.
void Zero3Gathers::fetch(const std::vector<Wanted>& wanted, bool coalesced) {
  if (wanted.empty()) return;
  double elements = 0, tensors = 0;
  for (const Wanted& each : wanted) {
    elements += each.elements;
    tensors += each.tensors;
  }
  const StepInput& input = writer_.input();
  make_room(writer_.number_bytes() * elements);
  // A gather without a stream of its own waits for the kernels that were launched before it.
  Mark ready = input.strategy.zero.overlap_comm ? writer_.last_host() : writer_.last_compute();
  // Offloaded parameters come up from host memory first, every rank its shard, and the host waits:
  // DeepSpeed copies them by Tensor.to() without non_blocking.
  if (input.strategy.parameter_place != Offload::none)
    ready = writer_.host({0}, Cause::offload_transfer, "copy_wait", {to_device(elements, ready)});
  if (input.strategy.zero.stops_at_fetches) ready = clear_buffer(elements, ready);
  writer_.spend(writer_.scaled(tensors * input.stack.host.gather_tensor.value),
                Cause::module_hooks);
  const Mark gather = gather_shards(elements, ready);
  writer_.allocate(gather, Held::gathered, writer_.number_bytes() * elements);
  uncut_.push_back(coalesced ? writer_.number_bytes() * elements : 0);
  for (const Wanted& each : wanted) {
    state_[each.instance] = State::in_flight;
    arrival_[each.instance] = gather;
    batch_[each.instance] = uncut_.size() - 1;
  }
  live_ += elements;
}

// Releases that stop at fetches fill the buffer with zeros and wait for the device before they ask
// for the gather.
Mark Zero3Gathers::clear_buffer(double elements, Mark ready) {
  const Mark cleared = writer_.beside(Stream::gather, writer_.number_bytes() * elements,
                                      Cause::gather_bytes, "clear_buffer", {ready});
  stop_for(cleared);
  return writer_.last_host();
}

// Everything that the device was given is done, reductions and this among it.
void Zero3Gathers::stop_for(Mark mark) {
  writer_.host({0}, Cause::gather_latency, "fetch_wait", {mark});
  gradients_.await();
  writer_.drain(writer_.input().stack.host.sync.value, Cause::gather_latency, "synchronize");
  fetches_.clear();
  for (const GivenUp& each : given_up_) held_ -= each.bytes;
  given_up_.clear();
}

Mark Zero3Gathers::to_device(double elements, Mark ready) {
  const double bytes = writer_.number_bytes() * elements / writer_.sharers();
  if (on_drives_ > 0)
    ready = writer_.traffic(Plan::from_drive, {on_drives_ * bytes}, Cause::offload_transfer,
                            "parameters_from_drive", {ready});
  return writer_.traffic(Plan::to_device, {bytes}, Cause::offload_transfer, "parameters_to_device",
                         {ready});
}

// After the forward pass a secondary partition, if there is one, is nearer. Quantised, 8 bits
// travel with a scale for each block of them.
Mark Zero3Gathers::gather_shards(double elements, Mark ready) {
  const ZeroKeys& keys = writer_.input().strategy.zero;
  const bool again = writer_.context.phase != Phase::forward;
  const bool near = keys.hpz > 1 && again;
  const Plan plan = near ? Plan::secondary_gather : Plan::all_gather;
  const double mine =
      elements / (near ? static_cast<double>(keys.hpz) : writer_.sharers());  // of the shard
  const auto gather = [&](double bytes, std::string_view name) {
    return writer_.collective(plan, {bytes}, Stream::gather, Cause::gather_bytes, name, {ready});
  };
  if (!keys.quantized_weights)
    return gather(writer_.number_bytes() * elements, "gather_parameters");
  ready = writer_.beside(Stream::gather, (writer_.number_bytes() + 1) * mine, Cause::gather_bytes,
                         "quantize", {ready});
  gather(elements, "gather_parameters");
  const Mark arrived = gather(4 * elements / quantized_block, "gather_scales");
  return writer_.beside(Stream::gather, (1 + writer_.number_bytes()) * elements,
                        Cause::gather_bytes, "dequantize", {arrived});
}

// The next kernel needs it. Out of a coalesced gather all tensors are then cut at once; until that
// is done they are there twice. The host runs at most two such waits ahead.
void Zero3Gathers::await(std::uint32_t instance) {
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
void Zero3Gathers::prefetch(std::size_t visit) {
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
    wanted.push_back({next.instance, needed, static_cast<double>(gathered_tensors(*next.unit))});
    elements += needed;
  }
  fetch(wanted, true);
}

// A leaf module has hooks of its own, and none of what is in it; a function has none.
int Zero3Gathers::hooked_modules(std::size_t visit) const {
  const Unit& unit = *visits_[visit].unit;
  if (writer_.input().strategy.zero.leaf_modules && unit.in_moe)
    return begin_[visit] == visit ? 1 : 0;
  return unit.owners + unit.plain_modules;
}

void Zero3Gathers::before(std::size_t visit) {
  const Visit& now = visits_[visit];
  const bool leaf = writer_.input().strategy.zero.leaf_modules && now.unit->in_moe;
  const int modules = hooked_modules(visit);
  if (modules == 0) return;
  const Seconds hook = writer_.input().stack.host.module_hook.value;
  writer_.host(writer_.scaled(static_cast<double>(modules) * hook), Cause::module_hooks,
               "fetch_release");
  if (leaf)
    fetch_leaf(visit);
  else
    fetch_module(now);
  prefetch(end_[visit] - 1);
}

void Zero3Gathers::fetch_module(const Visit& now) {
  const double needed = gathered_elements(*now.unit);
  const std::size_t tensors = gathered_tensors(*now.unit);
  const auto of_all = static_cast<double>(tensors);
  if (tensors == 0 || state_[now.instance] == State::gathered) return;
  if (state_[now.instance] == State::in_flight) {
    for (std::size_t i = 0; i < tensors; ++i) await(now.instance);
    return;
  }
  // Modules with a tensor each gather one by one.
  const auto apart = std::min(static_cast<std::size_t>(now.unit->owners), tensors);
  const bool stops = writer_.input().strategy.zero.stops_at_fetches;
  for (std::size_t i = 0; i < apart; ++i) {
    const auto parts = static_cast<double>(apart);
    fetch({{now.instance, needed / parts, of_all / parts}}, !stops && tensors > apart);
    await(now.instance);
  }
  if (stops) stop_for(arrival_[now.instance]);
}

void Zero3Gathers::fetch_leaf(std::size_t first) {
  std::vector<Wanted> wanted;
  for (std::size_t i = first; i < end_[first]; ++i)
    if (const double needed = gathered_elements(*visits_[i].unit);
        needed > 0 && state_[visits_[i].instance] == State::sharded)
      wanted.push_back(
          {visits_[i].instance, needed, static_cast<double>(gathered_tensors(*visits_[i].unit))});
  fetch(wanted, true);
  for (std::size_t i = first; i < end_[first]; ++i)
    if (state_[visits_[i].instance] == State::in_flight) await(visits_[i].instance);
}

// Called again before `max_reuse` other elements are, or passed over by the prefetch because it was
// still there.
bool Zero3Gathers::reused_soon(std::size_t visit) const {
  const std::size_t next = next_use_[visit];
  if (next == never || writer_.input().strategy.zero.stops_at_fetches) return false;
  return scheduled_[visits_[visit].instance] > visit ||
         before_[begin_[next]] - before_[end_[visit]] < writer_.input().strategy.zero.max_reuse;
}

void Zero3Gathers::release_module(std::size_t last) {
  for (std::size_t i = begin_[last]; i <= last; ++i) {
    const double needed = gathered_elements(*visits_[i].unit);
    if (needed <= 0 || reused_soon(i)) continue;
    live_ -= needed;
    give_up(visits_[i].instance, writer_.number_bytes() * needed);
  }
}

void Zero3Gathers::after(std::size_t visit) {
  if (cut_ > 0) {
    writer_.allocate(writer_.last_compute(), Held::gathered, cut_);
    writer_.release(writer_.last_compute(), Held::gathered, cut_);
    given_up_.push_back({writer_.last_compute(), cut_});
    cut_ = 0;
  }
  if (end_[visit] == visit + 1) release_module(visit);
}

void Zero3Gathers::start_again() {
  live_ = 0;
  prefetched_ = 0;
  scheduled_.assign(scheduled_.size(), 0);
  uncut_.clear();
  fetches_.clear();
  given_up_.clear();
  held_ = 0;
}

}  // namespace stepsim
