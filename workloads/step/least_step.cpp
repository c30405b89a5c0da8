#include "workloads/step/least_step.hpp"

#include <algorithm>
#include <concepts>
#include <limits>

#include "sim/base/lists.hpp"
#include "workloads/layers/routing.hpp"
#include "workloads/pipeline/pipeline.hpp"
#include "workloads/pipeline/schedule.hpp"
#include "workloads/pipeline/transfers.hpp"
#include "workloads/program/run_shared.hpp"
#include "workloads/program/run_visit.hpp"
#include "workloads/sharding/schemes.hpp"
#include "workloads/sharding/states.hpp"
#include "workloads/strategy/row_lengths.hpp"

namespace stepsim {
namespace {

// Operations that are written for kernels that run together, and for a message.
constexpr double of_kernels = 2.3, of_message = 4;

// Rows of a pass as they are run.
double time_of(const StepInput& input, const Unit& unit, const std::vector<KernelRow>& rows,
               bool backward) {
  const auto on_device = [&](const std::vector<KernelRow>& some) {
    return device_time(input.cluster.gpu, input.stack, some, backward).value;
  };
  if (unit.hand.rounds == 1) return on_device(rows);
  const RingRows split = rows_in_ring(unit, rows);
  return on_device(split.around) + static_cast<double>(unit.hand.rounds) * on_device(split.block);
}

// Passes forward of one micro-batch: the one that is trained on, and those that only score.
double forward_passes(const Job& job) {
  return static_cast<double>(1 + job.reference_passes() + job.scoring_passes +
                             job.estimating_passes());
}

// Micro-batches after which a stage has had as many under way as it ever has.
std::int64_t until_fullest(const PipelineParallel& p, std::int64_t micro_batches) {
  const bool fills_all = p.schedule == PipelineSchedule::gpipe || splits_backward(p.schedule);
  return fills_all ? micro_batches : std::min(micro_batches, 4 * p.size);
}

// Bytes that wait on a stage when most of its micro-batches are under way.
double most_kept(const StepInput& input, std::int64_t stage, const std::vector<double>& pieces) {
  const PipelineParallel& p = input.strategy.pipeline_parallel;
  if (p.size == 1) return pieces.front();
  double held = 0, most = 0;
  for (const Turn& turn : turns_of(p, stage, until_fullest(p, input.job.accumulation))) {
    if (turn.pass == Pass::weights) continue;  // part of what is kept has gone before
    held += (goes_back(turn.pass) ? -1 : 1) * pieces[static_cast<std::size_t>(turn.piece)];
    most = std::max(most, held);
  }
  return most;
}

// Memory is at its most once more when a micro-batch has left its gradients.
bool comes_again(const StepInput& input) {
  if (input.job.only_update) return false;
  const PipelineParallel& p = input.strategy.pipeline_parallel;
  return input.job.accumulation > (p.size == 1 ? 1 : 2 * p.pieces());
}

// Returns the bytes of earlier micro-batches' gradients, sharded and in the dtype of the update.
double gradients_reduced(const RankPart& rank) {
  return with_scheme(rank.input.strategy, [&]<Scheme S>() { return S::gradients_at_update(rank); });
}

// Returns the bytes of those that FSDP keeps whole where it does not reduce each micro-batch, in
// the type of the backward pass or, by its second version, in that of the reduction; else 0.
double gradients_whole(const RankPart& rank) {
  const Strategy& s = rank.input.strategy;
  if (!is_fsdp(s.sharding) || s.fsdp.sync_each_batch) return 0;
  const bool as_reduced = s.fsdp.version != 1 && s.fsdp.reduce == FsdpDtype::fp32;
  return (as_reduced ? 4 : s.precision.numbers) * rank.shares.trained;
}

// Returns the kernels that run behind the backward pass of a unit for its gradients.
std::vector<KernelRow> kernels_of_gradients(const StepInput& input, const Unit& unit) {
  if (unit.tensors.empty() || !unit.trained) return {};
  return with_scheme(input.strategy, [&]<Scheme S>() { return S::gradient_kernels(input, unit); });
}

double fastest_gpu(const Cluster& cluster) {
  return cluster.speeds.empty() ? 1 : std::max(1.0, *std::ranges::max_element(cluster.speeds));
}

}  // namespace

LeastSteps::Passes& LeastSteps::Passes::operator+=(const Passes& more) {
  forward += more.forward;
  backward += more.backward;
  host += more.host;
  kept += more.kept;
  again += more.again;
  gathered += more.gathered;
  dense += more.dense;
  experts += more.experts;
  paced.forward.go_on(more.paced.forward);
  Pace back = more.paced.backward;
  back.go_on(paced.backward);
  paced.backward = back;
  paced.ahead += more.paced.ahead;
  paced.back += more.paced.back;
  return *this;
}

LeastSteps::Passes LeastSteps::sum_of(std::span<const Passes> pieces) {
  Passes sum;
  for (const Passes& piece : pieces) sum += piece;
  return sum;
}

double LeastSteps::alone(Collective kind, Rank size, Rank stride, double bytes) {
  if (size <= 1 || bytes <= 0) return 0;
  const auto [place, added] = costs_.try_emplace({kind, size, stride});
  if (added)
    for (const Candidate& way :
         plan_collective(cluster_, kind, side_by_side(0, size, stride)).candidates)
      place->second.push_back(way.cost);
  return least_of(place->second, bytes);
}

// Returns the groups that begin on one node, from this rank on: their ranks are alike, and do the
// same at once.
std::vector<Group> LeastSteps::side_by_side(Rank first, Rank size, Rank stride) const {
  const bool alike = cluster_.speeds.empty() && cluster_.slow_links.empty() &&
                     cluster_.uneven.empty() && cluster_.events.empty();
  const Rank here = cluster_.gpus_per_node() - first % cluster_.gpus_per_node();
  std::vector<Group> groups(alike ? std::min(stride, here) : 1);
  for (Rank group = 0; group < groups.size(); ++group)
    for (Rank i = 0; i < size; ++i)
      groups[group].push_back((first + group + i * stride) % cluster_.ranks());
  return groups;
}

std::vector<double> LeastSteps::sent(const StepInput& input) {
  const Mesh mesh = mesh_of(input.strategy, cluster_);
  const Rank ranks = mesh.in_stage();
  std::vector<double> seconds(mesh.stages);
  for (Rank stage = 0; stage < mesh.stages && mesh.stages > 1; ++stage) {
    const Rank first = stage * ranks;
    const auto [place, added] = sends_.try_emplace({first, ranks});
    if (added)
      for (const Candidate& way : plan_sends(cluster_, side_by_side(first, 2, ranks)).candidates)
        place->second.push_back(way.cost);
    seconds[stage] = least_of(place->second, message_bytes(input));
  }
  return seconds;
}

double LeastSteps::least_of(const std::vector<Cost>& ways, double bytes) const {
  double least = std::numeric_limits<double>::infinity();
  for (const Cost& cost : ways) least = std::min(least, cost.at({bytes}).value);
  return least;
}

// Returns the time of sending once to each node and once to each rank there, at the same time, or
// straight to all.
double LeastSteps::exchanged(const StepInput& input, const Mesh& mesh, const Unit& unit) {
  if (!sends_once(input.strategy.experts.dispatcher))
    return alone(Collective::all_to_all, mesh.experts, mesh.beside(), unit.exchange);
  const auto rows_to = [&](Rank parts) {
    const Experts& e = *input.model.experts;
    return unit.once * parts_met(e.count, e.per_token, static_cast<double>(parts),
                                 chosen_groups(e, input.strategy.experts));
  };
  const auto send = [&](Rank size, Rank stride, double bytes) {
    if (size <= 1) return 0.0;
    const auto [place, added] = exchanges_.try_emplace({size, stride});
    if (added) {
      Group group(size);
      for (Rank i = 0; i < size; ++i) group[i] = i * stride;
      for (const Candidate& way : plan_exchange(cluster_, {group}).candidates)
        place->second.push_back(way.cost);
    }
    return least_of(place->second, bytes);
  };
  const Rank inside = mesh.experts / mesh.expert_nodes;
  return std::max(send(mesh.expert_nodes, mesh.beside() * inside, rows_to(mesh.expert_nodes)),
                  send(inside, mesh.beside(), rows_to(mesh.experts)));
}

LeastSteps::Passes LeastSteps::passes_of(const StepInput& input, const std::vector<Unit>& units) {
  const Mesh mesh = mesh_of(input.strategy, cluster_);
  const auto& host = input.stack.host;
  const double core = cluster_.node.host.core_speed.number();
  const bool waits = !input.strategy.experts.overlaps;
  const auto handed = [&](const Unit& unit, Phase phase) {
    double sum = 0;
    const Awaited all = awaited(input.strategy, unit, phase);
    for (const auto transfers : {all.before, all.behind})
      for (const Transfer& transfer : transfers) {
        const auto [kind, size, stride] = shape_of(transfer.kind, mesh);
        sum += alone(kind, size, stride, transfer.bytes);
      }
    const Visit visit{.unit = &unit, .phase = phase};
    const bool sends = sends_before(visit) || sends_behind(visit);
    if (sends) sum += exchanged(input, mesh, unit);
    return waits ? sum : 0;
  };
  const auto dispatched = [&](const std::vector<KernelRow>& rows, Seconds launch) {
    return operators_of(rows, input.stack.operators) * launch.value / core;
  };
  // FSDP has the parameters of a whole layer, or of what stands outside, at a time.
  const bool gathers = is_fsdp(input.strategy.sharding);
  const double width = input.strategy.fsdp.narrow_gather ? 1 : input.strategy.precision.numbers;
  Passes sum;
  for (const Unit& unit : units) {
    const auto visits = static_cast<double>(unit.times), rounds = static_cast<double>(unit.rounds);
    double forward = rounds * time_of(input, unit, unit.forward, false);
    double backward = rounds * time_of(input, unit, unit.backward, true);
    double issued = dispatched(unit.forward, host.forward_launch.value) * forward_passes(input.job);
    issued += dispatched(unit.backward, host.backward_launch.value);
    const std::vector<KernelRow> summed = kernels_of_gradients(input, unit);
    backward += device_time(cluster_.gpu, input.stack, summed, true).value;
    forward += handed(unit, Phase::forward);
    backward += handed(unit, Phase::backward);
    if (unit.called_again) {
      backward += rounds * time_of(input, unit, unit.again, false);
      backward += handed(unit, Phase::recompute);
      issued += dispatched(unit.again, host.forward_launch.value);
    }
    const double trained = visits * unit.trained_elements();
    const bool apart = sends_tokens(input.strategy) && unit.kind == TensorClass::expert;
    sum += {.forward = visits * forward * forward_passes(input.job),
            .backward = visits * backward,
            .host = visits * (rounds * issued + dispatched(summed, host.plain_launch.value)),
            .kept = visits * (unit.memory.kept + unit.memory.input),
            .again = visits * (unit.memory.saved - unit.memory.kept),
            .gathered = gathers ? visits * width * unit.elements() : 0,
            .dense = apart ? 0 : trained,
            .experts = apart ? trained : 0};
  }
  sum.paced = paced(input, mesh, units);
  return sum;
}

void LeastSteps::add_gradients(Pace& pace, Work& work, const StepInput& input,
                               const Unit& unit) const {
  const std::vector<KernelRow> summed = kernels_of_gradients(input, unit);
  if (summed.empty()) return;
  const double issue = operators_of(summed, input.stack.operators) *
                       input.stack.host.plain_launch.number() /
                       cluster_.node.host.core_speed.number();
  const double sum = device_time(cluster_.gpu, input.stack, summed, true).value;
  pace.run(issue, sum);
  work += {.host = issue, .kernels = sum, .operations = 1 + of_kernels};
}

// Adds a visit as run_visit writes it.
Work LeastSteps::add_visit(Pace& pace, const StepInput& input, const Mesh& mesh,
                           const Visit& visit) {
  const Unit& unit = *visit.unit;
  const bool backward = visit.phase == Phase::backward;
  const auto& host = input.stack.host;
  const double core = cluster_.node.host.core_speed.number();
  const double launch = host.collective_launch.number() / core, sync = host.sync.number();
  const std::vector<KernelRow>& rows = backward                          ? unit.backward
                                       : visit.phase == Phase::recompute ? unit.again
                                                                         : unit.forward;
  const auto exchange = [&](double bytes) {
    return alone(Collective::all_to_all, mesh.experts, mesh.beside(), bytes);
  };
  Work work;
  const auto send_tokens = [&] {
    const double alone = exchanged(input, mesh, unit);
    pace.collective(launch, alone);
    work += {.host = launch, .exchange = alone, .operations = of_message};
  };
  const auto hand_over = [&](std::span<const Transfer> transfers) {
    for (const Transfer& transfer : transfers) {
      const auto [kind, size, stride] = shape_of(transfer.kind, mesh);
      pace.collective(launch, alone(kind, size, stride, transfer.bytes));
      work += {.host = launch, .operations = of_message};
    }
  };
  const Awaited awaits = awaited(input.strategy, unit, visit.phase);
  if (sends_before(visit)) send_tokens();
  const auto ask = [&](double alone) {
    pace.ask(launch, alone, sync);
    work += {.host = launch + sync, .operations = of_message};
  };
  if (unit.stops.agrees && !backward) ask(0);
  const double dispatcher = dispatcher_calls(input, unit).value;
  const double calls = module_calls(input, visit).value;
  pace.spend(dispatcher / 2);
  if (unit.stops.told > 0 && !backward) ask(exchange(unit.stops.told));
  pace.spend(dispatcher / 2 + calls);
  work.host += dispatcher + calls;
  hand_over(awaits.before);
  const double each = (backward ? host.backward_launch : host.forward_launch).number() / core;
  const double dispatch = operators_of(rows, input.stack.operators) * each;
  const double device = time_of(input, unit, rows, backward);
  const bool apart = unit.hand.rounds > 1 || (unit.hand.overlapped && backward) ||
                     input.strategy.tensor_parallel.in_pieces;
  for (std::int64_t round = 0; round < unit.rounds; ++round) {
    const double reads = backward ? 0 : unit.stops.reads * sync;
    if (reads > 0) pace.drain(reads);
    work += {.host = reads + dispatch,
             .kernels = device,
             .operations = of_kernels + (unit.hand.rounds > 1 ? 2 * of_message : 0)};
    if (apart)
      pace.run_apart(dispatch, device);
    else
      pace.run(dispatch, device);
  }
  hand_over(awaits.behind);
  if (sends_behind(visit)) send_tokens();
  if (backward) add_gradients(pace, work, input, unit);
  return work;
}

PacedPiece LeastSteps::paced(const StepInput& input, const Mesh& mesh,
                             const std::vector<Unit>& units) {
  PacedPiece paced;
  const auto add = [&](Pace& pace, const Unit& unit, Phase phase) {
    Pace visit;
    const Work once = add_visit(visit, input, mesh, {.unit = &unit, .phase = phase});
    pace.go_on(unit.times == 1 ? visit : visit.repeated(unit.times));
    const auto times = static_cast<double>(unit.times);
    (phase == Phase::forward ? paced.ahead : paced.back) +=
        {times * once.host, times * once.kernels, times * once.exchange, times * once.operations};
  };
  for (const Unit& unit : units) add(paced.forward, unit, Phase::forward);
  for (const Unit& unit : units)
    if (unit.called_again) add(paced.backward, unit, Phase::recompute);
  for (std::size_t i = units.size(); i-- > 0;) add(paced.backward, units[i], Phase::backward);
  return paced;
}

// Most layers are like one that was seen before.
std::vector<LeastSteps::Passes> LeastSteps::layers_of(const StepInput& input,
                                                      const ModelUnits& units) {
  std::vector<Passes> all;
  for (std::size_t layer = 0; layer < units.layers.size(); ++layer)
    all.push_back(units.alike[layer] == layer ? passes_of(input, units.layers[layer])
                                              : all[units.alike[layer]]);
  if (input.strategy.activation_place != Offload::none)
    for (Passes& layer : all) layer.kept = 0;
  return all;
}

std::vector<LeastSteps::Stage> LeastSteps::stages_of(const std::vector<StageShare>& shares,
                                                     const Passes& embedding, const Passes& head,
                                                     const std::vector<Passes>& layers) {
  std::vector<Stage> stages;
  for (const StageShare& share : shares) {
    Stage& pieces = stages.emplace_back();
    std::int64_t layer = 0;
    for (const std::int64_t end : share.ends) {
      Passes& sum = pieces.emplace_back();
      if (share.model.part.embeds && pieces.size() == 1) sum += embedding;
      for (; layer < end; ++layer)
        sum += layers[static_cast<std::size_t>(whole_layer(share.model, layer))];
    }
    if (share.model.part.predicts) pieces.back() += head;
  }
  return stages;
}

// Returns what a rank's parameters and gradients take at the least, one message for all of them,
// where a buffer of all gradients is scattered and the updated parameters are gathered.
StageTraffic LeastSteps::traffic_of(const StepInput& input, const Passes& all) {
  const Strategy& s = input.strategy;
  const bool scatters = with_scheme(s, []<Scheme S>() { return std::same_as<S, Distributed>; });
  if (!scatters || input.job.only_update) return {};
  const Mesh mesh = mesh_of(s, cluster_);
  const auto shared = [&](Collective kind, double width) {
    return alone(kind, mesh.shard, mesh.apart(), width * all.dense) +
           alone(kind, mesh.expert_shard, mesh.beside() * mesh.experts, width * all.experts);
  };
  const double gather = shared(Collective::all_gather, s.precision.numbers);
  const double reduce = shared(Collective::reduce_scatter, gradient_bytes(s));
  if (s.distributed.overlap_gather) return {gather, reduce, s.distributed.overlap_reduce};
  // All gradients may be there by the end of the backward pass; parameters come behind the update.
  return {0, gather + (s.distributed.overlap_reduce ? 0 : reduce), false};
}

// Returns the stages that may hold most: an earlier one has more under way, unless layers of
// another kind make it the smaller one, and the last one has the head.
std::vector<std::size_t> LeastSteps::perhaps_fullest(const std::vector<StageShare>& shares,
                                                     const std::vector<Stage>& stages) {
  struct Size {
    std::int64_t layers;
    double kept, trained;
  };
  std::vector<Size> sizes;
  std::vector<std::size_t> fullest;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const Passes all = sum_of(stages[stage]);
    const Size size{shares[stage].model.layers, all.kept, all.dense + all.experts};
    const bool less = std::ranges::any_of(sizes, [&](const Size& before) {
      return size.layers <= before.layers && size.kept <= before.kept &&
             size.trained <= before.trained;
    });
    if (less && stage + 1 < stages.size()) continue;
    sizes.push_back(size);
    fullest.push_back(stage);
  }
  return fullest;
}

// A stage begins when those before it have sent something forward, and theirs comes after its end
// where backward passes are whole. Parameters may come until the last piece has had its first turn,
// and gradients may go from the last turn of the last piece.
double LeastSteps::least_time(const StepInput& input, const std::vector<Stage>& stages) {
  const PipelineParallel& p = input.strategy.pipeline_parallel;
  const auto batches = input.job.only_update
                           ? 0.0
                           : static_cast<double>(p.micro_batches_of_piece(input.job.accumulation));
  const std::vector<double> messages = sent(input);
  double time = 0, around = 0;
  for (std::size_t number = 0; number < stages.size(); ++number) {
    const Stage& stage = stages[number];
    const Passes all = sum_of(stage), others = sum_of(std::span(stage).first(stage.size() - 1));
    time = std::max({time, around + batches * (all.forward + all.backward), batches * all.host});
    if (p.way() == PipelineWay::round && !splits_backward(p.schedule)) {
      const bool last = number + 1 == stages.size();  // its last piece sends nothing on
      time = std::max(time, batches * static_cast<double>(p.virtual_stages - (last ? 1 : 0)) *
                                messages[number]);
      const StageTraffic traffic = traffic_of(input, all);
      const double turns = static_cast<double>(p.size);
      const double ahead = stage.back().forward + turns * others.forward;
      const double back = stage.back().backward + turns * others.backward;
      const double beside = (traffic.before > 0 ? ahead : 0) + (traffic.in_backward ? back : 0);
      time = std::max(
          time, traffic.before + batches * (all.forward + all.backward) - beside + traffic.behind);
    }
    if (p.way() == PipelineWay::both_ways) continue;
    around += stage.front().forward;
    if (!splits_backward(p.schedule)) around += stage.front().backward;
  }
  return time;
}

// Returns the larger of what is there while the head runs backward, and when the first layer does.
double LeastSteps::most_bytes(const StepInput& input, std::size_t stage, const Stage& pieces,
                              const Passes& head, const std::vector<Passes>& layers) {
  if (input.job.only_update) return 0;
  const PipelineParallel& p = input.strategy.pipeline_parallel;
  std::vector<double> kept;
  Passes whole;
  for (const Passes& piece : pieces) {
    kept.push_back(piece.kept);
    whole += piece;
  }
  const double all = most_kept(input, static_cast<std::int64_t>(stage), kept);
  if (p.way() != PipelineWay::round || splits_backward(p.schedule)) return all;
  const bool last = static_cast<std::int64_t>(stage) + 1 == p.size;
  // A root that is freed behind the forward pass comes back when the loss has let go of its logits.
  const double at_head =
      is_fsdp(input.strategy.sharding) && input.strategy.fsdp.reshard_root ? all - head.kept : all;
  const double again = std::ranges::min(mapped(layers, &Passes::again));
  if (p.size > 1 || !input.strategy.fsdp.reshard_after_forward)  // all are gathered by then
    return whole.gathered + (last ? std::max(at_head, all - head.kept + again) : all + again);
  const double layer = std::ranges::min(
      mapped(layers, [](const Passes& each) { return each.again + each.gathered; }));
  return last ? std::max(at_head + head.gathered, all - head.kept + layer) : all + layer;
}

LeastSteps::Stages LeastSteps::all_stages(const StepInput& input) {
  const ModelUnits units = units_of(input, LayersWith::units_once);
  Stages all{share_out(input.model, input.strategy.pipeline_parallel),
             passes_of(input, units.head),
             layers_of(input, units),
             {}};
  all.stages = stages_of(all.shares, passes_of(input, {units.embedding}), all.head, all.layers);
  return all;
}

// Times are those of usual rows, memory is that of full ones.
StepInput LeastSteps::with_usual_rows(const StepInput& asked) {
  StepInput input = asked;
  input.job = usual_rows(asked.job, asked.strategy, cluster_);
  return input;
}

// Returns a bound for passes that nothing else runs in between; 0 for others.
Seconds LeastSteps::in_turns(const StepInput& asked) {
  const StepInput input = with_usual_rows(asked);
  const PipelineParallel& p = input.strategy.pipeline_parallel;
  const ExpertStrategy& experts = input.strategy.experts;
  if (p.way() != PipelineWay::round || splits_backward(p.schedule) || input.job.only_update ||
      forward_passes(input.job) != 1)
    return Seconds{0};
  const auto& host = input.stack.host;
  const double core = cluster_.node.host.core_speed.number();
  const std::vector<Stage> all = all_stages(input).stages;
  const auto stages = mapped(all, [](const Stage& stage) { return mapped(stage, &Passes::paced); });
  double time = 0;
  if (p.size == 1 && experts.overlaps) {
    time = end_of_pairs(stages.front().front(), input.micro_batches());
  } else if (p.size == 1) {
    Pace batch = stages.front().front().forward;
    batch.go_on(stages.front().front().backward);
    time = batch.repeated(input.micro_batches())({}).last();
  } else {
    time = end_of_turns(
        p, stages, input.micro_batches(),
        {.stops = input.stack.stops_for_stages, .paired = experts.overlaps},
        {.post = host.collective_launch.number() / core,
         .sync = host.sync.number() / core,
         .messages = sent(input)},
        mapped(all, [&](const Stage& stage) { return traffic_of(input, sum_of(stage)); }));
  }
  return Seconds{time / fastest_gpu(cluster_) * input.stack.stretch(input.job)};
}

LeastStep LeastSteps::of(const StepInput& input) {
  const auto [shares, head, layers, stages] = all_stages(input);
  double bytes = 0;
  for (const std::size_t stage : perhaps_fullest(shares, stages)) {
    const bool alone = shares.size() == 1;
    const RankPart rank = rank_part({cluster_, alone ? input.model : shares[stage].model,
                                     input.stack, input.strategy, input.job},
                                    LayersWith::units_once);
    double more = most_bytes(input, stage, stages[stage], head, layers);
    if (comes_again(input)) {
      const double whole = gradients_whole(rank);
      // A split backward pass may leave the weights of some layers to the end.
      if (whole > 0 && splits_backward(input.strategy.pipeline_parallel.schedule))
        more = std::max(more, whole);
      else
        more += whole > 0 ? whole : gradients_reduced(rank);
    }
    bytes = std::max(bytes, resident_of(rank).in(Pool::device) + more);
  }
  const StepInput usual = with_usual_rows(input);
  const double time = usual.job == input.job ? least_time(input, stages)
                                             : least_time(usual, all_stages(usual).stages);
  double operations = 0;
  for (const Stage& stage : stages)
    for (const Passes& piece : stage)
      operations += piece.paced.ahead.operations + piece.paced.back.operations;
  return {Seconds{time / fastest_gpu(cluster_) * input.stack.stretch(input.job)},
          bytes * (1 + slack_of(input).number()) + cluster_.gpu.memory.library.number(),
          operations};
}

}  // namespace stepsim
