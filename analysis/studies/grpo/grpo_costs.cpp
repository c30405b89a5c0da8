#include "analysis/studies/grpo/grpo_costs.hpp"

#include <cmath>
#include <numeric>

#include "sim/base/lists.hpp"
#include "workloads/grpo/lengths.hpp"
#include "workloads/pipeline/stages.hpp"
#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/sharding/states.hpp"
#include "workloads/step/step.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

// Returns the seconds in which at least one collective of the first replayed rank runs.
double seconds_of_traffic(const OpGraph& graph, const Trace& trace) {
  std::vector<std::pair<double, double>> spans;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.kind != OpKind::collective || op.pattern == no_pattern) continue;
    const auto& members = graph.patterns()[index(op.pattern)].members;
    if (holds(members, Rank{0})) spans.emplace_back(trace.start[i], trace.finish[i]);
  }
  std::ranges::sort(spans);
  double sum = 0, until = 0;
  for (const auto& [start, finish] : spans) {
    sum += std::max(0.0, finish - std::max(start, until));
    until = std::max(until, finish);
  }
  return sum;
}

struct ReplayedTraining {
  TrainingParts parts;
  PlayedBy by;
};

ReplayedTraining replayed_training(const Scenario& learner, const Replaying& how) {
  StepProgram program = build_step(step_input(learner), Folding::automatic);
  if (!how.free.empty()) program.graph = idealised(program.graph, how.free);
  const Trace trace = how.player.play(program.traffic.folded.platform, program.graph);
  const Breakdown breakdown = break_down(program.graph, trace, 0);
  TrainingParts parts;
  for (const BreakdownRow& row : breakdown.rows)
    parts.exposed[static_cast<std::size_t>(row.cause)] = row.exposed.value;
  parts.seconds = trace.makespan.value;
  parts.idle = breakdown.idle.value;
  parts.traffic = seconds_of_traffic(program.graph, trace);
  return {parts, trace.by};
}

ReplayedTraining ask(const Scenario& learner, const Replaying& how) {
  return learner.data.kept<KeptAnswers<ReplayedTraining>>().of(
      learner, how.free, how.player, [&] { return replayed_training(learner, how); });
}

// Levels of a pack's length at which the step is replayed; shorter packs have levels that halve,
// down to the last.
constexpr std::int64_t levels = 4, least_level = 64;

TrainingParts between(const TrainingParts& a, const TrainingParts& b, double share) {
  TrainingParts sum = (1 - share) * a;
  sum += share * b;
  return sum;
}

// Whoever shares parameters has a part of each; ranks of a layer, of its experts and of all stages
// have one whole copy among them.
Group holders_of(const Scenario& scenario, const Placement& placement) {
  const Group& learners = placement.learners;
  if (facts_of(scenario.strategy).gathers_parameters) return learners;
  const Mesh mesh = mesh_of(scenario.strategy, learner_cluster(scenario.cluster, *scenario.grpo));
  const Rank layer = std::min(mesh.in_stage(), std::max(mesh.tensor, mesh.experts * mesh.beside()));
  Group holders;
  for (Rank stage = 0; stage < mesh.stages; ++stage)
    for (Rank rank = 0; rank < layer; ++rank)
      holders.push_back(learners[stage * mesh.in_stage() + rank]);
  return holders;
}

struct SyncTimes {
  double gathered = 0, all = 0, hosts = 0, gathers = 0, parking = 0, sleep = 0;
  double sent = 0;     // on its way
  double written = 0;  // into files
  PlayedBy by{};
};

SyncTimes replayed_sync(const SyncInput& input, std::span<const std::int64_t> layers,
                        const Player& player) {
  const SyncProgram program = build_sync(input, layers);
  const Trace trace = player.play(program.traffic.folded.platform, program.graph);
  const double gathered = trace.finish[index(program.gathered)];
  SyncTimes times{.gathered = gathered, .all = trace.makespan.value, .by = trace.by};
  // The root's operations run one after the other, so their times are added up.
  for (std::size_t i = 0; i < program.graph.size(); ++i) {
    const Op& op = program.graph.ops()[i];
    const std::string_view name = program.graph.names()[index(op.name)];
    const double seconds = trace.finish[i] - trace.start[i];
    if (name == written_name) times.written += seconds;
    if (trace.start[i] < gathered) continue;
    const bool copies = op.kind == OpKind::transfer && op.rank == program.root;
    const bool sends = holds(sent_names, name) && op.rank == program.root;
    if (sends) times.sent += seconds;
    if ((name == sleep_name || name == wake_name) && (copies || op.kind == OpKind::host))
      times.sleep += seconds;
    else if (op.kind == OpKind::host && op.rank == program.root)
      times.hosts += op.seconds.value;
    else if (copies && !sends)
      times.parking += seconds;
    if (op.stream == Stream::gather && op.kind == OpKind::collective) times.gathers += seconds;
  }
  return times;
}

// Replays embedding, head and all layers: those behind the first add what one more of their kind
// does.
SyncTimes sync_of_all(const SyncInput& input, const Player& player) {
  const std::array<std::int64_t, 1> first{0};
  const SyncTimes one = replayed_sync(input, first, player);
  SyncTimes all = one;
  for (const AlikeLayers& alike : alike_layers(input.model)) {
    const double more = static_cast<double>(alike.count - (alike.first == 0 ? 1 : 0));
    if (more <= 0) continue;
    const std::array<std::int64_t, 2> both{0, alike.first};
    const SyncTimes two = replayed_sync(input, both, player.for_more());
    all.by = together(all.by, two.by);
    for (double SyncTimes::*part :
         {&SyncTimes::gathered, &SyncTimes::all, &SyncTimes::hosts, &SyncTimes::gathers})
      all.*part += more * (two.*part - one.*part);
  }
  return all;
}

// Replays all at once, since buckets reach over layers, files over all.
SyncTimes sync_at_once(const SyncInput& input, const Player& player) {
  std::vector<std::int64_t> layers(static_cast<std::size_t>(input.model.layers));
  std::iota(layers.begin(), layers.end(), 0);
  return replayed_sync(input, layers, player);
}

}  // namespace

TrainingParts& TrainingParts::operator+=(const TrainingParts& other) {
  for (std::size_t c = 0; c < exposed.size(); ++c) exposed[c] += other.exposed[c];
  idle += other.idle;
  seconds += other.seconds;
  traffic += other.traffic;
  return *this;
}

TrainingParts operator*(double factor, TrainingParts parts) {
  for (double& seconds : parts.exposed) seconds *= factor;
  parts.idle *= factor;
  parts.seconds *= factor;
  parts.traffic *= factor;
  return parts;
}

bool stands_alone(const Scenario& scenario, GrpoModel model) {
  const OwnGpus& own = scenario.grpo->own;
  return (model == GrpoModel::critic && own.critic > 0) ||
         (model == GrpoModel::reference && own.reference > 0) ||
         (model == GrpoModel::reward && own.reward > 0);
}

Cluster cluster_of(const Scenario& scenario, GrpoModel model) {
  const Cluster& cluster = scenario.cluster;
  if (model == GrpoModel::reward && !stands_alone(scenario, model)) model = GrpoModel::critic;
  if (!stands_alone(scenario, model)) return learner_cluster(cluster, *scenario.grpo);
  const Placement placement = place(cluster, *scenario.grpo);
  if (model == GrpoModel::critic) return cluster_of(cluster, placement.critic);
  return cluster_of(cluster,
                    model == GrpoModel::reference ? placement.reference : placement.reward);
}

Scenario learners_of(const Scenario& scenario, GrpoModel model, Passes passes) {
  const Grpo& grpo = *scenario.grpo;
  const bool critic = model == GrpoModel::critic || model == GrpoModel::reward;
  Scenario learner = scenario;
  learner.grpo.reset();
  learner.cluster = cluster_of(scenario, model);
  learner.job.method = Method::grpo;
  learner.job.sequence = whole_rows(scenario.strategy, grpo.pack_length);
  const bool all = passes == Passes::all;
  const auto beside = [&](bool there, GrpoModel frozen) {
    return all && there && !stands_alone(scenario, frozen);
  };
  learner.job.reference_model = beside(grpo.reference_model, GrpoModel::reference);
  // A prompt and its response attend to themselves.
  learner.job.documents.mean = static_cast<double>(grpo.prompt_tokens) + mean_response(grpo);
  const auto learners = static_cast<std::int64_t>(learner.cluster.ranks());
  learner.strategy.zero.hpz =
      secondary_partition(grpo.hpz, sharing_states(scenario.strategy, learners));
  // Scores of the policy before the first of several updates.
  learner.job.scoring_passes = all && grpo.scores() ? 1 : 0;
  if (!critic) return learner;
  learner.job.reference_model = beside(grpo.reward_model, GrpoModel::reward);
  learner.job.scoring_passes = all ? 1 : 0;
  learner.model.looked_up = learner.model.rows_of_table();
  learner.model.vocabulary = 1;
  learner.model.tied_embeddings = false;
  return learner;
}

std::size_t packers_of(const Scenario& scenario, GrpoModel model) {
  return mesh_of(scenario.strategy, cluster_of(scenario, model)).data();
}

TrainingReplays::TrainingReplays(const Scenario& scenario, const Replaying& how, GrpoModel model,
                                 Passes passes)
    : learner_(learners_of(scenario, model)), how_(how) {
  // The first stage, which has the embedding and waits longest.
  const PipelineParallel& pipeline = learner_.strategy.pipeline_parallel;
  const Model stage =
      pipeline.size > 1 ? share_out(learner_.model, pipeline).front().model : learner_.model;
  states_ = states_between_steps(resident_of(
      rank_part({learner_.cluster, stage, learner_.stack, learner_.strategy, learner_.job})));
  const std::int64_t level = (scenario.grpo->pack_length + levels - 1) / levels;
  least_ = whole_rows(scenario.strategy, least_level);
  grid_ = std::max(least_, whole_rows(scenario.strategy, level));
  if (passes == Passes::update) learner_ = learners_of(scenario, model, passes);
}

void TrainingReplays::replay_point(std::int64_t tokens, bool further) {
  const bool known = points_.contains(tokens);
  Point& point = points_[tokens];
  const auto step = [&](std::int64_t micro_batches) {
    learner_.job.sequence = tokens;
    learner_.job.micro_batch = 1;
    learner_.job.accumulation = micro_batches;
    ++replays_;
    const ReplayedTraining replayed = ask(learner_, how_);
    how_.player = how_.player.for_more();
    played_by_ = played_by_ ? together(*played_by_, replayed.by) : replayed.by;
    return replayed.parts;
  };
  // Fewer than fill a pipeline do not show what a further one takes.
  const std::int64_t full = learner_.strategy.pipeline_parallel.size;
  if (!known) point.one = step(full);
  if ((further || full > 1) && !point.has_further) {
    point.further = step(2 * full);
    point.further += -1 * point.one;
    point.further = 1 / static_cast<double>(full) * point.further;
    point.one += static_cast<double>(1 - full) * point.further;
    point.has_further = true;
  }
}

TrainingParts TrainingReplays::at(double tokens, bool first) {
  std::int64_t grid = grid_;
  while (tokens < static_cast<double>(grid) && grid > least_)
    grid = whole_rows(learner_.strategy, std::max(least_, grid / 2));
  const double place = tokens / static_cast<double>(grid);
  const auto below = std::max<std::int64_t>(1, static_cast<std::int64_t>(place));
  const double share = std::clamp(place - static_cast<double>(below), 0.0, 1.0);
  const auto point = [&](std::int64_t level) -> const TrainingParts& {
    replay_point(level * grid, !first);
    const Point& p = points_.at(level * grid);
    return first ? p.one : p.further;
  };
  if (share <= 0) return point(below);
  return between(point(below), point(below + 1), share);
}

TrainingParts TrainingReplays::parts(std::span<const double> tokens) {
  TrainingParts sum;
  for (std::size_t i = 0; i < tokens.size(); ++i) sum += at(tokens[i], i == 0);
  return sum;
}

PassReplays::PassReplays(const Scenario& scenario, const Replaying& how, GrpoModel model)
    : with_(scenario, how, model, Passes::update), without_(with_) {
  with_.score();
}

PassTime PassReplays::time(double tokens) {
  const std::array rows{tokens};
  TrainingParts pass = with_.parts(rows);
  pass += -1 * without_.parts(rows);
  const double host =
      pass.idle + pass.exposed[index(Cause::launch)] + pass.exposed[index(Cause::module_hooks)];
  const double all = std::max(0.0, pass.seconds);
  return {all, std::clamp(all - host, 0.0, all)};
}

LearnerStates& LearnerStates::operator+=(const LearnerStates& beside) {
  all += beside.all;
  gradients += beside.gradients;
  reference += beside.reference;
  return *this;
}

LearnerStates states_between_steps(const Resident& resident) {
  LearnerStates states{.all = resident.in(Pool::device)};
  for (const Holding& holding : resident.holdings) {
    if (holding.pool != Pool::device) continue;
    if (holding.held == Held::parameters) states.parameters += holding.bytes;
    if (holding.held == Held::reference) states.reference += holding.bytes;
    const bool gradients = holding.held == Held::gradients || holding.held == Held::own_gradients ||
                           holding.held == Held::bucket;
    if (gradients) states.gradients += holding.bytes;
  }
  return states;
}

Seconds replay_return(const Scenario& scenario, const Placement& placement, double bytes,
                      const Player& player) {
  if (bytes <= 0) return {0};
  const SyncInput input{.cluster = scenario.cluster,
                        .model = scenario.model,
                        .stack = *scenario.engine,
                        .grpo = *scenario.grpo,
                        .placement = placement};
  const SyncProgram program = build_return(input, bytes);
  return player.play(program.traffic.folded.platform, program.graph, Watched::makespan).makespan;
}

TurnBytes turn_bytes(const Scenario& scenario, const LearnerStates& states) {
  const Grpo& grpo = *scenario.grpo;
  const EngineStack& engine = *scenario.engine;
  if (grpo.layout != GrpoLayout::colocated || engine.own_weights) return {};
  const DecodeModel decode = decode_of(scenario);
  TurnBytes turn;
  turn.parameters = grpo.park_learners ? states.parameters : 0;
  turn.states = states.parked(grpo) - turn.parameters;
  if (grpo.stays_awake()) return turn;
  if (grpo.sleep_level.value_or(engine.sleep.level) == 1) turn.weights = decode.weight_bytes();
  turn.mapped = grpo.memory_utilization * scenario.cluster.gpu.memory.capacity.number();
  return turn;
}

// Returns the bytes of each tensor of the adapters that learners train, layer by layer.
std::vector<std::vector<double>> adapters_of(const Scenario& scenario) {
  std::vector<std::vector<double>> layers;
  if (!scenario.grpo->send_adapters) return layers;
  const Scenario learner = learners_of(scenario);
  const RankPart rank = rank_part(step_input(learner));
  for (const std::vector<Unit>& layer : rank.units.layers) {
    std::vector<double>& sizes = layers.emplace_back();
    for (const Unit& unit : layer)
      for (std::int64_t i = 0; unit.adapter && i < unit.times; ++i)
        for (const double elements : unit.tensors) sizes.push_back(bytes_16 * elements);
  }
  return layers;
}

double rows_of_call(const Scenario& scenario) {
  const Grpo& grpo = *scenario.grpo;
  const double engines = static_cast<double>(place(scenario.cluster, grpo).engines.size());
  return grpo.rollout_at_once > 0 ? static_cast<double>(grpo.rollout_at_once)
                                  : std::ceil(grpo.responses_of_call() / std::max(1.0, engines));
}

DecodeModel decode_of(const Scenario& scenario) {
  EngineStack engine = *scenario.engine;
  const bool padded = rows_of_call(scenario) > static_cast<double>(scenario.grpo->samples);
  engine.repeats_heads =
      engine.repeats_heads && padded && scenario.strategy.attention > AttentionKernel::flash3;
  return {scenario.cluster, scenario.model, engine, *scenario.grpo};
}

bool gathers_for_generation(const Scenario& scenario) {
  return scenario.engine->own_weights && scenario.grpo->gather_whole_model &&
         scenario.strategy.sharding == Sharding::zero3;
}

SyncReplay replay_sync(const Scenario& scenario, const Placement& placement, const TurnBytes& turn,
                       const Player& player) {
  const Grpo& grpo = *scenario.grpo;
  const SyncInput input{scenario.cluster,
                        scenario.model,
                        *scenario.engine,
                        grpo,
                        placement,
                        holders_of(scenario, placement),
                        turn,
                        adapters_of(scenario)};
  const SyncTimes all = grpo.protocol >= SyncProtocol::buckets ? sync_at_once(input, player)
                                                               : sync_of_all(input, player);
  SyncReplay result;
  result.played_by = all.by;
  result.cost.gather = {all.gathered};
  result.cost.send = {all.all - all.gathered};
  result.gathers = all.gathers;
  result.parking = all.parking;  // whatever the number of layers
  result.sleep = all.sleep;
  result.written = all.written;
  const double rest = result.cost.send.value - result.gathers - result.parking - result.sleep;
  // With host buckets engines load beside broadcasts: only what is longer than those counts.
  result.overhead = grpo.protocol == SyncProtocol::host_buckets ? rest - all.sent : all.hosts;
  result.broadcasts = rest - result.overhead;
  // If nothing is sent, the rounding of the sums is left.
  if (result.broadcasts < 1e-9 * result.cost.send.value) result.broadcasts = 0;
  double tensors = static_cast<double>(tensors_of(scenario.model));
  if (grpo.send_adapters) {
    tensors = 0;
    for (const auto& layer : input.adapters) tensors += static_cast<double>(layer.size());
  }
  result.cost.calls = grpo.protocol == SyncProtocol::v1 ? tensors : 1;
  result.cost.busy = scenario.engine->sync.busy.value;
  result.cost.window = {result.overhead / result.cost.calls + result.cost.busy.value};
  const bool pauses = (grpo.protocol == SyncProtocol::v3 || grpo.sync_aborts) &&
                      grpo.layout == GrpoLayout::separate;
  if (pauses) result.cost.pause = scenario.engine->sync.pause.value;
  return result;
}

}  // namespace stepsim
