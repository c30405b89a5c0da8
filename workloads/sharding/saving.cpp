#include "workloads/sharding/saving.hpp"

#include <cmath>
#include <functional>
#include <numeric>

#include "workloads/program/step_writer.hpp"
#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/sharding/states.hpp"
#include "workloads/sharding/step_plans.hpp"

namespace stepsim {
namespace {

constexpr double published_file = 5e9;  // bytes at which a published model goes on in a new file
constexpr double most_storages = 1024;  // that are told apart

std::vector<Rank> first_ranks(Rank count) {
  std::vector<Rank> ranks(count);
  std::iota(ranks.begin(), ranks.end(), Rank{0});
  return ranks;
}

// Returns the bytes of each tensor in the file of one rank's optimizer: so many are written between
// two copies.
double storage_of(const RankPart& rank) {
  const double updated = rank.shares.updated;
  const double elements =
      facts_of(rank.input.strategy).has_sub_groups
          ? std::clamp(rank.input.strategy.zero.sub_group, updated / most_storages, updated)
          : updated;
  return 4 * elements;
}

// Returns bytes in pieces of one size, and the rest.
std::vector<double> pieces_of(double bytes, double piece) {
  if (bytes <= 0) return {};
  const auto count = static_cast<std::size_t>(std::ceil(bytes / piece));
  std::vector<double> pieces(count, piece);
  pieces.back() = bytes - static_cast<double>(count - 1) * piece;
  return pieces;
}

// Counts the elements of a rank's experts that are not frozen.
double trained_in_experts(const ModelUnits& units) {
  double elements = 0;
  for (std::size_t layer = 0; layer < units.layers.size(); ++layer)
    for (const Unit& unit : units.like(layer))
      if (unit.kind == TensorClass::expert)
        elements += unit.trained_elements() * static_cast<double>(unit.times);
  return elements;
}

// Returns the plans for saving, and of those for the traffic of a step what saving takes as well.
// The others would keep ranks apart that are alike here: the first one, which writes, has another
// place in a ring of all for each of them.
Plans save_plans(const RankPart& rank) {
  const StepInput& input = rank.input;
  const Cluster& cluster = input.cluster;
  const Checkpoint files = checkpoint_of(rank);
  const FileRate write{input.stack.host.file_write.value};
  const FileRate read{input.stack.host.file_read.value};
  Plans plans;
  Plans of_step = step_plans(cluster, needs_of(rank));
  for (const Plan plan : {Plan::signal, Plan::from_drive, Plan::neighbours})
    plans[plan] = std::move(of_step[plan]);
  if (facts_of(input.strategy).gathers_parameters && input.job.save.weights)
    plans[Plan::all_gather] = std::move(of_step[Plan::all_gather]);
  const auto writers = [&](Rank count, Plan copy, Plan file) {
    if (count == 0) return;
    plans[copy] = plan_copy(cluster, Copy::d2h, first_ranks(count));
    plans[file] = plan_file(cluster, FileAccess::write, first_ranks(count), write);
  };
  writers(files.writers, Plan::first_to_host, Plan::first_to_file);
  writers(files.expert_writers, Plan::experts_to_host, Plan::experts_to_file);
  writers(files.owners, Plan::owners_to_host, Plan::owners_to_file);
  const std::vector<Rank> everybody = first_ranks(cluster.ranks());
  plans[Plan::to_device] = plan_copy(cluster, Copy::h2d, everybody);
  plans[Plan::owners_from_file] = plan_file(cluster, FileAccess::read, everybody, read);
  plans[Plan::all_from_file] =
      plan_file(cluster, FileAccess::read, everybody,
                {read.most, 1.0 / static_cast<double>(cluster.gpus_per_node())});
  const Mesh& mesh = rank.mesh;
  if (facts_of(input.strategy).sends_back && mesh.shard > 1)
    plans[Plan::share_out] = plan_collective(cluster, Collective::broadcast,
                                             strided_groups(mesh.ranks, mesh.shard, mesh.tensor));
  return plans;
}

class Saver {
 public:
  Saver(const RankPart& rank, const Traffic& traffic)
      : builder_(traffic, Written::whole, rank.input.job.budget),
        writer_(rank, builder_),
        facts_(facts_of(rank.input.strategy)),
        files_(checkpoint_of(rank)) {
    writer_.context = {Phase::save, -1, -1};
  }

  OpGraph save() {
    const StepInput& input = writer_.input();
    if (input.job.save.weights) {
      if (facts_.gathers_parameters)
        gather_weights();
      else
        write_device(files_.weights, published_file, Plan::first_to_host, Plan::first_to_file);
      meet();
    }
    if (input.job.save.states) {
      write_device(files_.model_states, published_file, Plan::first_to_host, Plan::first_to_file);
      write_states();
    }
    if (files_.experts > 0)
      write_device(files_.experts, published_file, Plan::experts_to_host, Plan::experts_to_file);
    meet();
    return builder_.take();
  }

  OpGraph resume(double skipped) {
    const StepInput& input = writer_.input();
    writer_.context = {Phase::load, -1, -1};
    read(files_.model_states, Plan::all_from_file);
    read(files_.states, Plan::owners_from_file);
    writer_.host(writer_.scaled(skipped * input.stack.host.batch.value), Cause::other,
                 "skip_batches");
    meet();
    return builder_.take();
  }

 private:
  void meet() {
    const Mark met = writer_.collective(Plan::signal, {8}, Stream::reduce, Cause::checkpoint_save,
                                        "barrier", {writer_.last_host()});
    writer_.host({0}, Cause::checkpoint_save, "everybody_is_here", {met});
  }
  // Files are left out where training does not wait for them.
  Mark write(Plan file, double bytes) {
    if (writer_.input().job.save.asynchronous) return writer_.last_host();
    return move(file, bytes, "write_file");
  }
  // The host thread does one after the other.
  Mark move(Plan way, double bytes, std::string_view name) {
    const Mark moved = writer_.traffic(way, {bytes}, Cause::checkpoint_save, name);
    writer_.host({0}, Cause::checkpoint_save, name, {moved});
    return moved;
  }
  void write_device(double bytes, double part, Plan copy, Plan file);
  Mark gather_module(const Unit& unit, double size);
  void gather_weights();
  void write_states();
  void read(double bytes, Plan file);

  ProgramBuilder builder_;
  StepWriter writer_;
  SchemeFacts facts_;
  Checkpoint files_;
};

// A part is copied to ordinary host memory, written, and forgotten; where training does not wait
// for that, all parts are there at the end.
void Saver::write_device(double bytes, double part, Plan copy, Plan file) {
  for (const double now : pieces_of(bytes, part)) {
    writer_.allocate(move(copy, now, "copy_to_host"), Held::saved_part, now, Pool::pageable);
    const Mark written = write(file, now);
    if (!writer_.input().job.save.asynchronous)
      writer_.release(written, Held::saved_part, now, Pool::pageable);
  }
}

// Gathers one module, and returns when the first rank's host has it.
Mark Saver::gather_module(const Unit& unit, double size) {
  const auto& host = writer_.input().stack.host;
  const Seconds tensor = facts_.sends_back ? host.gather_tensor.value : host.shard_tensor.value;
  writer_.host(writer_.scaled(static_cast<double>(unit.tensors.size()) * tensor),
               Cause::module_hooks, "gather_module");
  const Mark gathered = writer_.collective(Plan::all_gather, {size}, Stream::gather,
                                           Cause::checkpoint_save, "gather_module");
  writer_.host({0}, Cause::checkpoint_save, "gathered", {gathered});
  writer_.allocate(gathered, Held::gathered, size);
  return gathered;
}

// Module by module the whole model comes to the first rank's host memory, frozen layers as well, of
// which nothing is written. DeepSpeed then sends each module out again from there, as if the first
// rank had changed it. A state that nobody asks to be on the host is copied on each device instead.
void Saver::gather_weights() {
  const StepInput& input = writer_.input();
  const SavedWhole place = input.job.save.gathers;
  const bool on_devices = place == SavedWhole::devices;
  // The node of the first rank has it once, and memory is told rank by rank.
  const double ranks = input.cluster.gpus_per_node();
  double held = 0;
  Mark last{};
  for (const Visit& visit : visits_of(writer_.rank().units)) {
    const Unit& unit = *visit.unit;
    if (visit.phase != Phase::forward || unit.tensors.empty()) continue;
    const bool frozen = input.strategy.lora.rank > 0 && !unit.trained;
    if (frozen && place == SavedWhole::trained) continue;
    writer_.context.layer = visit.layer;
    const double size = (frozen ? writer_.number_bytes() : facts_.stored_bytes) * unit.elements();
    last = gather_module(unit, size);
    if (!on_devices) last = move(Plan::first_to_host, size, "copy_to_host");
    const double kept = on_devices ? size : size / ranks;
    writer_.allocate(last, Held::saved_model, kept, on_devices ? Pool::device : Pool::pageable);
    held += kept;
    if (!on_devices && facts_.sends_back && writer_.sharers() > 1)
      last = writer_.collective(Plan::share_out, {size}, Stream::gather, Cause::checkpoint_save,
                                "share_out", {last});
    writer_.release(last, Held::gathered, size);
  }
  writer_.context.layer = -1;
  if (on_devices) {
    write_device(files_.weights, published_file, Plan::first_to_host, Plan::first_to_file);
    return writer_.release(writer_.last_host(), Held::saved_model, held);
  }
  Mark written = writer_.last_host();
  for (const double piece : pieces_of(files_.weights, published_file))
    written = write(Plan::first_to_file, piece);
  if (!input.job.save.asynchronous)
    writer_.release(written, Held::saved_model, held, Pool::pageable);
}

// Writes the states tensor by tensor; what is on the host or on drives already is not copied down
// first.
void Saver::write_states() {
  const StepInput& input = writer_.input();
  const double part = storage_of(writer_.rank());
  const bool device = input.strategy.optimizer_place == Offload::none;
  if (device) {
    write_device(files_.states, part, Plan::owners_to_host, Plan::owners_to_file);
    return;
  }
  for (const double piece : pieces_of(files_.states, part)) {
    if (input.strategy.optimizer_place == Offload::nvme)
      move(Plan::from_drive, piece, "read_drive");
    write(Plan::owners_to_file, piece);
  }
}

void Saver::read(double bytes, Plan file) {
  const bool device = writer_.input().strategy.optimizer_place == Offload::none;
  for (const double now : pieces_of(bytes, published_file)) {
    const Mark read = move(file, now, "read_file");
    writer_.allocate(read, Held::saved_part, now, Pool::pageable);
    const Mark placed = device ? move(Plan::to_device, now, "copy_to_device") : writer_.last_host();
    writer_.release(placed, Held::saved_part, now, Pool::pageable);
  }
}

MomentProgram build(const StepInput& input, Folding folding,
                    const std::function<OpGraph(Saver&)>& write) {
  const RankPart rank = rank_part(input);
  MomentProgram program;
  program.traffic = make_traffic(machinery_of(input.cluster), save_plans(rank).take(), folding);
  Saver saver(rank, program.traffic);
  program.graph = write(saver);
  return program;
}

}  // namespace

Checkpoint checkpoint_of(const RankPart& rank) {
  const StepInput& input = rank.input;
  const Strategy& s = input.strategy;
  const Saving& save = input.job.save;
  const Mesh& mesh = rank.mesh;
  const Shares& shares = rank.shares;
  const SchemeFacts facts = facts_of(s);
  const bool adapters = s.lora.rank > 0;
  const bool exchanged = exchanges_tokens(s.experts.kernel) && s.experts.parallel > 1;
  Checkpoint made;
  made.writers = mesh.tensor;
  made.owners = facts.shares_states ? mesh.shard * mesh.tensor : mesh.tensor;
  double whole = facts.stored_bytes * (adapters ? shares.trained : shares.whole);
  if (exchanged) {
    made.expert_writers = mesh.experts * mesh.expert_tensor;
    const double all = static_cast<double>(count_parameters(input.model).of(TensorClass::expert));
    const double mine = adapters ? facts.stored_bytes * trained_in_experts(rank.units)
                                 : input.strategy.precision.numbers * all /
                                       static_cast<double>(made.expert_writers);
    whole -= mine;
    made.experts = mine * ((save.weights ? 1 : 0) + (save.states ? 1 : 0));
  }
  const auto pieces = [](double bytes) { return std::ceil(bytes / published_file); };
  if (save.weights) {
    made.weights = whole;
    made.files += made.writers * pieces(made.weights);
    if (exchanged) made.files += made.expert_writers * pieces(made.experts);
  }
  if (!save.states) return made;
  made.states = (facts.master_bytes + state_bytes(rank)) * owned_elements(rank);
  if (facts.updates_stored) made.states += facts.stored_bytes * shares.updated;
  if (!facts.gathers_parameters) made.model_states = whole;
  if (made.experts > 0 && input.model.experts)  // DeepSpeed: a file for each expert of each layer
    made.files += static_cast<double>(input.model.experts->count * input.model.layers);
  made.files += made.owners + (facts.gathers_parameters ? made.owners : made.writers);
  made.files += mesh.ranks;  // state of random numbers
  return made;
}

MomentProgram build_save(const StepInput& input, Folding folding) {
  return build(input, folding, [](Saver& saver) { return saver.save(); });
}

MomentProgram build_resume(const StepInput& input, double skipped, Folding folding) {
  return build(input, folding, [&](Saver& saver) { return saver.resume(skipped); });
}

}  // namespace stepsim
