#include "workloads/sharding/zero3/update.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/sharding/states.hpp"
#include "workloads/sharding/updates.hpp"

namespace stepsim {

Zero3Update::Zero3Update(StepWriter& writer, const TrainedTensors& trained, Zero3Gathers& gathers)
    : writer_(writer),
      trained_(trained),
      gathers_(gathers),
      costs_(writer.input().stack.operators.zero_update),
      on_drives_(parameters_on_drives(writer.rank())) {}

// All ranks wait for the norm of each sub-group. Gradients that go to the host had theirs taken on
// the way, without a cast to 64 bits.
void Zero3Update::find_norms(std::size_t groups, double part) {
  const bool on_device = writer_.input().strategy.optimizer_place == Offload::none;
  const double bytes = on_device ? costs_.norm : writer_.number_bytes();
  for (std::size_t i = 0; i < groups; ++i) {
    writer_.run({{"norm", KernelClass::memory, 0, bytes * part,
                  3 * trained_.count / static_cast<double>(groups)}},
                false, Cause::optimizer, "gradient_norm");
    const Mark norm = writer_.collective(Plan::signal, {8}, Stream::reduce, Cause::optimizer,
                                         "norm", {writer_.last_compute()});
    writer_.compute_after(norm);
  }
}

// Updates sub-group by sub-group: a norm that everybody waits for, a loop over all tensors of the
// model to clear their gradients, the update. A sub-group is one tensor at the least, as those of
// size 0 are, so the loop is quadratic in the number of tensors.
void Zero3Update::run() {
  const StepInput& input = writer_.input();
  const double core = input.cluster.node.host.core_speed.value.value;
  const double shard = trained_.parameters / writer_.sharers();
  const double size = input.strategy.zero.sub_group;
  const double most = std::max(1.0, trained_.count);
  const auto groups =
      static_cast<std::size_t>(size <= 0 ? most : std::clamp(std::ceil(shard / size), 1.0, most));
  const double count = static_cast<double>(groups);
  const double part = shard / count;
  writer_.context = {Phase::optimizer, -1, -1};
  find_norms(groups, part);
  writer_.host(trained_.count * input.stack.host.update_tensor.value / core, Cause::optimizer,
               "update_tensors");
  const Mark ready = writer_.last_compute();
  const Seconds clear = trained_.count * input.stack.host.clear_visit.value;
  const Offload place = input.strategy.optimizer_place;
  if (place == Offload::nvme)
    writer_.host({0}, Cause::offload_transfer, "gradients_written", {writer_.last_copy()});
  // The sub-groups that stay on the device come first, so that both work at the same time.
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

void Zero3Update::update_on_device(double part) {
  const Strategy& s = writer_.input().strategy;
  const bool split = s.optimizer_place != Offload::none;  // then fp32 gradients are there already
  const UpdateCost cost = update_cost(writer_.rank(), {part, 1, part});
  std::vector<KernelRow> rows{update_row(
      cost, (optimizer_traffic_bytes(writer_.rank()) + costs_.scale_and_copy) * part, 3)};
  if (!split)
    rows.insert(rows.begin(),
                {"flatten", KernelClass::memory, 0, (3 * writer_.number_bytes() + 4) * part, 2});
  const Mark update = writer_.run(rows, false, Cause::optimizer, "update");
  if (split) {
    hold_while_updating(writer_, update, cost);
    if (s.parameter_place != Offload::none)
      writer_.traffic(Plan::to_host, {writer_.number_bytes() * part}, Cause::offload_transfer,
                      "parameters_to_host", {update});
    return;
  }
  const double flat = gradient_bytes(s) * part;
  const double fp32 = flat < 4 * part ? 4 * part : 0;
  // The flat gradient goes when it is cast; what operators of the update make comes on top of the
  // cast one.
  writer_.allocate(update, Held::flat_gradient, flat);
  writer_.allocate(update, Held::fp32_gradient, fp32);
  if (fp32 > 0) writer_.release(update, Held::flat_gradient, flat);
  hold_while_updating(writer_, update, cost);
  if (fp32 == 0) writer_.release(update, Held::flat_gradient, flat);
  writer_.release(update, Held::fp32_gradient, fp32);
  stop_behind_update(writer_, 1);
}

void Zero3Update::update_on_host(double part, Mark ready) {
  const StepInput& input = writer_.input();
  // A benchmark of the optimizer alone calls no engine around it.
  const double around = input.job.only_update ? 0 : costs_.host;
  const Mark updated = update_shard_on_host(writer_, part, around, ready);
  if (input.strategy.parameter_place == Offload::none)
    writer_.traffic(Plan::to_device, {writer_.number_bytes() * part}, Cause::offload_transfer,
                    "parameters_to_device", {updated});
  if (on_drives_ > 0)
    writer_.traffic(Plan::to_drive, {on_drives_ * writer_.number_bytes() * part},
                    Cause::offload_transfer, "parameters_to_drive", {updated});
}

// Reads the fp32 copy, the moments and the gradient of a sub-group.
Mark Zero3Update::read_states(double part) {
  return writer_.traffic(Plan::from_drive, {(4 + state_bytes(writer_.rank()) + 4) * part},
                         Cause::offload_transfer, "states_from_drive");
}

// A sub-group is read, updated, written. Pipelined, the next one comes and the one before goes
// meanwhile.
void Zero3Update::update_from_drive(double part, bool last, Mark ready) {
  const Strategy& s = writer_.input().strategy;
  const auto wait = [&](Mark mark) {
    writer_.host({0}, Cause::offload_transfer, "drive_wait", {mark});
  };
  wait(read_ ? *read_ : read_states(part));
  read_.reset();
  if (s.offload.pipeline_read && !last) read_ = read_states(part);
  update_on_host(part, ready);
  if (written_) wait(*written_);
  written_ = writer_.traffic(Plan::to_drive, {(4 + state_bytes(writer_.rank())) * part},
                             Cause::offload_transfer, "states_to_drive");
  if (s.offload.pipeline_write && !last) return;
  wait(*written_);
  written_.reset();
}

// Gathers what stays gathered and was partitioned for the update, tensor by tensor, without
// waiting.
void Zero3Update::gather_persistent() {
  if (trained_.persistent.empty()) return;
  const double kept = static_cast<double>(trained_.persistent.size());
  writer_.host(writer_.scaled(kept * writer_.input().stack.host.kept_tensor.value),
               Cause::optimizer, "kept_tensors");
  for (const double elements : trained_.persistent) {
    Mark ready = writer_.last_compute();
    if (writer_.input().strategy.parameter_place != Offload::none)
      ready = gathers_.to_device(elements, writer_.last_host());
    writer_.collective(Plan::all_gather, {writer_.number_bytes() * elements}, Stream::gather,
                       Cause::gather_bytes, "gather_persistent", {ready, writer_.last_copy()});
  }
}

}  // namespace stepsim
