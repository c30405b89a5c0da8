#include "workloads/sharding/zero3/gradients.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workloads/sharding/states.hpp"
#include "workloads/sharding/updates.hpp"
#include "workloads/sharding/whole_matrices.hpp"

namespace stepsim {
namespace {

constexpr std::size_t reductions_in_flight = 2;

// Whole matrices need whole gradients.
Plan reduction_of(const Strategy& strategy) {
  return strategy.optimizer.orthogonal ? Plan::all_reduce : Plan::reduce_scatter;
}

}  // namespace

TrainedTensors trained_tensors(const std::vector<Visit>& visits, double persistence_threshold) {
  TrainedTensors trained;
  for (const Visit& visit : visits) {
    if (visit.phase != Phase::forward || visit.frozen) continue;
    if (visit.unit->trained) {
      trained.parameters += visit.unit->elements();
      trained.count += static_cast<double>(visit.unit->tensors.size());
    }
    for (const double elements : visit.unit->tensors)
      if (elements <= persistence_threshold) trained.persistent.push_back(elements);
  }
  return trained;
}

Zero3Gradients::Zero3Gradients(StepWriter& writer, const TrainedTensors& trained)
    : writer_(writer), trained_(trained), on_device_(states_on_device(writer.rank())) {}

void Zero3Gradients::add(const Unit& unit, bool last_micro_batch) {
  const ZeroKeys& keys = writer_.input().strategy.zero;
  const double core = writer_.input().cluster.node.host.core_speed.value.value;
  const Mark made = writer_.last_compute();
  for (const double elements : unit.tensors) {
    writer_.allocate(made, Held::gradients, writer_.number_bytes() * elements);
    writer_.host(gradient_hook(writer_.input(), trained_.count) / core, Cause::module_hooks,
                 "gradient_hook");
    if (bucket_ > 0 && bucket_ + elements > keys.reduce_bucket) reduce_bucket(last_micro_batch);
    bucket_ += elements;
    if (unit.kind == TensorClass::dense || unit.kind == TensorClass::expert)
      in_matrices_ += elements;
    waiting_.push_back({elements, unit.kind == TensorClass::norm});
    // A gradient that is too large for the bucket goes as it is.
    const Mark used =
        elements > keys.reduce_bucket
            ? reduce_bucket(last_micro_batch)
            : on_reduce_stream(2 * writer_.number_bytes() * elements, 1, "bucket_copy", made);
    writer_.release(used, Held::gradients, writer_.number_bytes() * elements);
  }
}

// Writes work on gradients. With overlap they are copied, reduced and sent to the host one after
// the other on a stream of its own, beside the kernels of the backward pass; without, in line with
// these.
Mark Zero3Gradients::on_reduce_stream(double bytes, double launches, std::string_view name,
                                      Mark ready) {
  const StepInput& input = writer_.input();
  if (!input.strategy.zero.overlap_comm)
    return writer_.run({{name, KernelClass::memory, 0, bytes, launches}}, true,
                       Cause::gradient_reduce, name);
  const Mark issued = writer_.host(writer_.scaled(launches * input.stack.host.plain_launch.value),
                                   Cause::launch, name);
  return writer_.beside(Stream::reduce, bytes, Cause::gradient_reduce, name, {ready, issued});
}

// The rank's parts of all tensors are put behind one another first, unless there is one tensor that
// divides evenly. At the end is the mark behind which the bucket's gradients are not needed.
Mark Zero3Gradients::reduce_bucket(bool last_micro_batch) {
  for (; reductions_.size() > reductions_in_flight; reductions_.pop_front())
    writer_.host({0}, Cause::gradient_reduce, "reduce_limit", {reductions_.front()});
  update_matrices();
  const Bytes bytes{writer_.number_bytes() * bucket_};
  const bool whole = waiting_.size() == 1 && std::fmod(bucket_, writer_.sharers()) == 0;
  const Mark made = writer_.last_compute();
  writer_.spend(writer_.scaled(writer_.input().stack.host.reduce_calls.value), Cause::module_hooks);
  const Mark ready = writer_.input().strategy.zero.stops_at_fetches ? list_parts(bytes.value, made)
                     : whole ? on_reduce_stream(2 * bytes.value, 1, "divide", made)
                             : on_reduce_stream(3 * bytes.value, 2, "interleave", made);
  const Mark reduced =
      quantizes_gradients(writer_.input().strategy, writer_.input().cluster)
          ? exchange_quantized(ready)
          : writer_.collective(reduction_of(writer_.input().strategy), bytes, Stream::reduce,
                               Cause::gradient_reduce, "reduce_bucket", {ready});
  writer_.allocate(ready, Held::reduce_input, whole ? 0 : bytes.value);
  writer_.release(reduced, Held::reduce_input, whole ? 0 : bytes.value);
  if (!writer_.input().strategy.zero.overlap_comm) writer_.compute_after(reduced);
  const bool offloaded = writer_.input().strategy.optimizer_place != Offload::none;
  reductions_.push_back(offloaded ? to_host(reduced, last_micro_batch) : reduced);
  reduced_ = {reduced, std::exchange(in_matrices_, 0)};
  waiting_.clear();
  bucket_ = 0;
  return reduced;
}

// The device comes to them when the next bucket is full.
void Zero3Gradients::update_matrices() {
  if (!reduced_ || !writer_.input().strategy.optimizer.orthogonal) return;
  orthogonalise(writer_, reduced_->in_matrices / elements_in_matrices(writer_.rank()),
                {reduced_->done});
  reduced_.reset();
}

// Does the same for releases that stop at fetches: gradients are divided in place, and handed over
// as a list of parts, of which PyTorch copies one after the other behind the one before.
Mark Zero3Gradients::list_parts(double bytes, Mark made) {
  const double copies = writer_.sharers() * static_cast<double>(waiting_.size());
  writer_.spend(writer_.scaled(copies * writer_.input().stack.host.plain_launch.value));
  return on_reduce_stream(4 * bytes, 1, "divide_and_list", made);
}

// Exchanges tensor by tensor: 4 bits to the ranks of the node, which sum them up, and 4 bits of the
// sums to the ranks of equal place in the other nodes. Vectors go as they are.
Mark Zero3Gradients::exchange_quantized(Mark ready) {
  const StepInput& input = writer_.input();
  const Rank neighbours = input.cluster.gpus_per_node() / writer_.mesh().tensor;
  const auto in_node = static_cast<double>(neighbours);
  constexpr double nibble = 0.5;
  Mark last = ready;
  const auto beside = [&](double bytes, std::string_view name) {
    last = writer_.beside(Stream::reduce, bytes, Cause::gradient_reduce, name, {last});
  };
  const auto send = [&](Plan plan, double bytes, std::string_view name) {
    last = writer_.collective(plan, {bytes}, Stream::reduce, Cause::gradient_reduce, name, {last});
  };
  for (const auto& [elements, vector] : waiting_) {
    if (vector || std::fmod(elements, 2 * writer_.sharers()) != 0) {
      send(Plan::reduce_scatter, writer_.number_bytes() * elements, "reduce_vector");
      continue;
    }
    beside((writer_.number_bytes() + nibble) * elements, "quantize");
    send(Plan::inside_exchange, nibble * elements, "exchange_inside");
    beside(nibble * elements + nibble * elements / in_node, "sum_and_quantize");
    send(Plan::across_exchange, nibble * elements / in_node, "exchange_across");
    beside((nibble + writer_.number_bytes()) * elements / in_node, "dequantize");
  }
  return last;
}

// A partition of gradients goes down in 16 bits and comes back up, or the other way round where the
// last micro-batch's are added to; at the boundary it goes down in fp32: eight bytes an element
// over the host link. What is on its way has device memory for a tensor at a time, in 16 bits and
// in fp32; the next bucket waits.
Mark Zero3Gradients::to_host(Mark reduced, bool last_micro_batch) {
  const double elements = bucket_ / writer_.sharers();
  double largest = 0;
  for (const Waiting& each : waiting_) largest = std::max(largest, each.elements);
  const double part = largest / writer_.sharers();
  const auto copy = [&](Plan way, double bytes, Mark ready) {
    return writer_.traffic(way, {bytes * elements}, Cause::offload_transfer, "gradient_partition",
                           {ready});
  };
  const Mark down = copy(Plan::to_host, writer_.number_bytes(), reduced);
  const Mark up = copy(Plan::to_device, writer_.number_bytes(), down);
  Mark done = up;
  if (last_micro_batch) {
    // Sub-groups that are updated on the device keep theirs there.
    done = copy(Plan::to_host, 4 * (1 - on_device_), up);
    if (writer_.input().strategy.optimizer_place == Offload::nvme) copy(Plan::to_drive, 4, done);
  }
  const double held = (writer_.number_bytes() + (last_micro_batch ? 4 : 0)) * part;
  writer_.allocate(up, Held::gradient_copy, held);
  writer_.release(done, Held::gradient_copy, held);
  writer_.stream_after(Stream::reduce, done, Cause::offload_transfer);
  return done;
}

void Zero3Gradients::finish(bool last_micro_batch) {
  if (bucket_ > 0) reduce_bucket(last_micro_batch);
  update_matrices();
  reductions_.clear();
}

void Zero3Gradients::await() {
  if (!reductions_.empty())
    writer_.host({0}, Cause::gradient_reduce, "reduce_wait", {reductions_.back()});
  reductions_.clear();
}

}  // namespace stepsim
