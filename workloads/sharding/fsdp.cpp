#include "workloads/sharding.hpp"

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

}  // namespace

// A group is a layer in one pass; what stands outside the layers forms the root group.
FullyShardedGroups::FullyShardedGroups(StepWriter& writer, const std::vector<Visit>& visits)
    : writer_(writer) {
  for (std::size_t i = 0; i < visits.size(); ++i) {
    const Visit& visit = visits[i];
    // Recomputation and backward of a layer share one gather: it is freed after its backward.
    const Phase pass = visit.phase == Phase::recompute ? Phase::backward : visit.phase;
    if (calls_.empty() || calls_.back().layer != visit.layer || calls_.back().phase != pass)
      calls_.push_back({i, i, visit.layer, pass, 0});
    GroupCall& call = calls_.back();
    call.last = i;
    call_of_.push_back(static_cast<std::uint32_t>(calls_.size() - 1));
    if (visit.phase == Phase::recompute) continue;  // counted with its backward
    call.elements += visit.unit->elements();
    if (visit.phase == Phase::forward && !visit.frozen) parameters_ += visit.unit->elements();
  }
  arrival_.assign(calls_.size(), Mark{});
  gathered_.assign(calls_.size(), 0);
}

void FullyShardedGroups::gather(std::size_t call) {
  if (call >= calls_.size() || gathered_[call] != 0 || calls_[call].elements <= 0) return;
  gathered_[call] = 1;
  const double bytes = half * calls_[call].elements;
  // Its buffer is that of the group before last: two live at once.
  const Mark ready = copied_out_.value_or(writer_.last_host());
  const Mark gather = writer_.collective(World::all_gather, {bytes}, Stream::gather,
                                         Cause::gather_bytes, "gather_group", {ready});
  arrival_[call] = gather;
  writer_.allocate(gather, "gathered", bytes);
}

void FullyShardedGroups::before(std::size_t visit) {
  const std::size_t number = call_of_[visit];
  const GroupCall& call = calls_[number];
  if (call.first != visit || call.elements <= 0) return;
  const double core = writer_.input().cluster.node.host.core_speed.value.value;
  writer_.host(writer_.input().stack.host.shard_group.value / core, Cause::module_hooks,
               "shard_group");
  gather(number);
  writer_.compute_after(arrival_[number]);
  // The tensors are cut out of the flat output, which then goes.
  copied_out_ = writer_.run({{"copy_out", KernelClass::memory, 0, 2 * half * call.elements, 1}},
                            false, Cause::gather_bytes, "copy_out");
  writer_.allocate(*copied_out_, "gathered", half * call.elements);
  writer_.release(*copied_out_, "gathered", half * call.elements);
  // Backward asks for the next group at once; forward relies on the host being ahead.
  if (call.phase == Phase::backward) gather(number + 1);
}

void FullyShardedGroups::after(std::size_t visit, bool) {
  const std::size_t number = call_of_[visit];
  const GroupCall& call = calls_[number];
  if (call.last != visit || call.elements <= 0) return;
  writer_.release(writer_.last_compute(), "gathered", half * call.elements);
  if (call.phase != Phase::backward) return;
  const double bytes = half * call.elements;
  const Mark copied_in = writer_.run({{"copy_in", KernelClass::memory, 0, 2 * bytes, 1}}, true,
                                     Cause::gradient_reduce, "copy_in");
  const Mark reduced = writer_.collective(World::reduce_scatter, {bytes}, Stream::reduce,
                                          Cause::gradient_reduce, "reduce_group", {copied_in});
  writer_.allocate(copied_in, "bucket", bytes);
  writer_.release(reduced, "bucket", bytes);
}

void FullyShardedGroups::finish_backward(bool) {
  gathered_.assign(calls_.size(), 0);
}

void FullyShardedGroups::step() {
  const StepInput& input = writer_.input();
  const double shard = parameters_ / writer_.ranks();
  writer_.context = {Phase::optimizer, -1, -1};
  writer_.run({{"norm", KernelClass::memory, 0, half * shard, 4}}, false, Cause::optimizer,
              "gradient_norm");
  const Mark norm = writer_.collective(World::signal, {4}, Stream::reduce, Cause::optimizer, "norm",
                                       {writer_.last_compute()});
  writer_.compute_after(norm);
  writer_.run({{"update", KernelClass::memory, 0,
                optimizer_traffic_bytes(input.strategy.optimizer) * shard, 8}},
              false, Cause::optimizer, "update");
  writer_.drain({0}, Cause::optimizer, "step_done");
}

}  // namespace stepsim
