#include "analysis/studies/grpo/grpo_prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "scenarios/read/grpo.hpp"
#include "sim/base/error.hpp"
#include "workloads/sharding/scheme_facts.hpp"

namespace stepsim {
namespace {

constexpr std::array all_phases{
    PhaseSpec{"wait", "learners wait for a batch", &GrpoPhases::wait},
    PhaseSpec{"rewards", "rewards of all responses of the step", &GrpoPhases::rewards},
    PhaseSpec{"compute", "training: kernels and launches", &GrpoPhases::compute},
    PhaseSpec{"communication", "training: exposed communication", &GrpoPhases::communication},
    PhaseSpec{"optimizer", "training: optimizer", &GrpoPhases::optimizer},
    PhaseSpec{"critic", "training: critic and reward model", &GrpoPhases::critic},
    PhaseSpec{"reference", "training: reference model from the host", &GrpoPhases::reference},
    PhaseSpec{"drain", "sync: engines finish their responses", &GrpoPhases::drain},
    PhaseSpec{"gather", "sync: learners gather", &GrpoPhases::gather},
    PhaseSpec{"broadcast", "sync: broadcast to engines", &GrpoPhases::broadcast},
    PhaseSpec{"per_tensor", "sync: calls and copies of each tensor", &GrpoPhases::per_tensor},
    PhaseSpec{"iterations", "sync: engines at work when a call comes", &GrpoPhases::iterations},
    PhaseSpec{"parking", "sync: learners' states to the host and back", &GrpoPhases::parking},
    PhaseSpec{"pause", "sync: engines put to sleep and woken", &GrpoPhases::pause},
};

double exposed(const TrainingParts& parts, std::initializer_list<Cause> causes) {
  double sum = 0;
  for (const Cause cause : causes) sum += parts.exposed[static_cast<std::size_t>(cause)];
  return sum;
}

// Scales the parts of training to what the steady steps took.
void split_training(const TrainingParts& all, double seconds, GrpoPhases& phases) {
  if (all.seconds <= 0) return;
  const double scale = seconds / all.seconds;
  phases.optimizer =
      scale * exposed(all, {Cause::optimizer, Cause::cpu_optimizer, Cause::offload_transfer});
  phases.communication = scale * (exposed(all, {Cause::gather_bytes, Cause::gather_latency,
                                                Cause::gradient_reduce, Cause::moe_all_to_all}));
  phases.compute = seconds - phases.optimizer - phases.communication;
}

struct Window {
  double start = 0, end = 0;
  double length() const { return end - start; }
};

// Measures the engines inside the window. A block that reaches over its edge counts in part.
void measure_engines(const GrpoRun& run, const Window& window, GrpoPrediction& p) {
  double busy = 0, sequences = 0, tokens = 0;
  for (const Engine& engine : run.engines) {
    for (const StepBlock& block : engine.log()) {
      const double length = block.end - block.start;
      const double inside = std::min(block.end, window.end) - std::max(block.start, window.start);
      if (inside <= 0 || length <= 0) continue;
      busy += inside;
      sequences += inside * block.sequences;
      tokens += static_cast<double>(block.tokens) * inside / length;
    }
    p.preemptions += static_cast<double>(engine.totals().preemptions);
    p.recomputed += engine.totals().recomputed;
    p.most_cached = std::max(p.most_cached, engine.totals().most_cached);
  }
  const double all = window.length() * static_cast<double>(run.engines.size());
  p.engine_busy = busy / all;
  p.running_sequences = sequences / all;
  p.generated_per_second = tokens / window.length();
  p.preemptions /= static_cast<double>(run.steps.size());
  p.recomputed /= static_cast<double>(run.steps.size());
}

void measure_steps(const Scenario& scenario, GrpoPrediction& p) {
  const GrpoRun& run = p.run;
  const auto warm = static_cast<std::size_t>(scenario.grpo->warmup_steps());
  // The last step's sync is not over when the run ends: the step before it is the last whole one.
  const std::size_t last = run.steps.size() - 1;
  const Window window{run.steps[warm - 1].end, run.steps[last - 1].end};
  const double n = static_cast<double>(last - warm);
  double trained = 0, dropped = 0, syncs = 0;
  for (std::size_t i = warm; i < last; ++i) {
    const StepRecord& s = run.steps[i];
    const double part = s.sync() > 0 ? 1 : 0;
    syncs += part;
    p.phases.wait += (s.wait + s.late) / n;
    p.phases.rewards += s.rewards / n;
    p.training += (s.reference + s.train) / n;
    p.phases.reference += s.reference / n;
    p.phases.drain += s.drain / n;
    p.phases.gather += (s.gather + part * p.sync_replay.gathers) / n;
    p.phases.broadcast += part * p.sync_replay.broadcasts / n;
    p.phases.per_tensor += part * p.sync_replay.overhead / n;
    p.phases.parking += part * p.sync_replay.parking / n;
    p.phases.iterations += s.calls / n;
    p.phases.critic += s.beside / n;
    p.phases.pause += (s.pause + part * p.sync_replay.sleep) / n;
    p.sync += (s.queued + s.sync()) / n;
    p.staleness += s.staleness / n;
    p.most_stale = std::max(p.most_stale, s.most_stale);
    p.mixed += s.mixed / n;
    p.truncated += s.truncated / n;
    p.responses += s.responses / n;
    p.packs += s.packs / n;
    trained += s.tokens;
    dropped += s.dropped_tokens;
  }
  // This is the mean over the syncs that there were, not over all steps.
  p.sync = syncs > 0 ? p.sync * n / syncs : 0;
  p.step_time = {window.length() / n};
  p.first_step = {run.steps.front().end};
  p.dropped_share = trained + dropped > 0 ? dropped / (trained + dropped) : 0;
  p.stale_share = run.generated > 0 ? run.stale / run.generated : 0;
  p.filtered_share = run.generated > 0 ? run.filtered / run.generated : 0;
  double cut = 0;
  for (const Engine& engine : run.engines) cut += engine.totals().given_up;
  const double all = run.generated + cut;
  p.given_up_share = all > 0 ? (run.given_up + cut) / all : 0;
  p.trained_per_second = trained / window.length();
  if (p.responses == 0)
    throw UserError(
        "no response is trained on in the steps that are measured, since every group has answers "
        "of one reward "
        "(job.zero_std_fraction) or is thrown away: measure more steps (job.measured_steps), or "
        "take more prompts to a step");
  p.responses_per_second = p.responses / p.step_time.value;
  p.learner_busy = p.training / p.step_time.value;
  p.gpu_hours_per_1000 = scenario.cluster.ranks() * 1000 / p.responses_per_second / 3600;
  measure_engines(run, window, p);
}

// Divides the time of calls as a step in the middle of one is divided.
StepParts parts_of_calls(const Scenario& scenario, const DecodeModel& decode,
                         const GrpoPrediction& p) {
  const double rows = rows_of_call(scenario),
               prompts = rows * static_cast<double>(scenario.grpo->prompt_tokens);
  StepParts parts = decode.parts(
      {.decoding = rows, .cached = prompts + std::max(0.0, p.most_cached - prompts) / 2});
  const double scale = parts.all() > 0 ? p.phases.wait / parts.all() : 0;
  for (double StepParts::*part :
       {&StepParts::launches, &StepParts::passes, &StepParts::cache, &StepParts::between})
    parts.*part *= scale;
  return parts;
}

void measure_card(const Scenario& scenario, GrpoPrediction& p) {
  const Grpo& grpo = *scenario.grpo;
  const bool colocated = grpo.layout == GrpoLayout::colocated;
  const bool spread = learner_cluster(scenario.cluster, grpo).nodes > 1;
  double seconds = 0;
  if (spread && p.training_parts.seconds > 0)
    seconds +=
        p.training_parts.traffic / p.training_parts.seconds * (p.training - p.phases.reference) +
        p.phases.gather;
  if (!colocated && scenario.cluster.nodes > 1) seconds += p.phases.broadcast;
  p.card_busy = seconds / p.step_time.value;
}

std::string bottleneck_of(const GrpoPrediction& p) {
  const auto largest =
      std::ranges::max_element(all_phases, [&](const PhaseSpec& a, const PhaseSpec& b) {
        return p.phases.*a.seconds < p.phases.*b.seconds;
      });
  return std::string(largest->text);
}

// Returns the seconds of weights from disk, processes and graphs, before anything is generated.
double start_up(const Scenario& scenario, const DecodeModel& decode) {
  const EngineStack::Start& start = scenario.engine->start;
  const double gpus = static_cast<double>(scenario.grpo->tensor_parallel);
  const double pairs = gpus > 1 ? start.pairs.number() : 0;
  return start.fixed.number() + pairs + gpus * decode.weight_bytes() / start.load.number() +
         (gpus - 1) * start.rank.number();
}

// Checkpoints are written by all learners, each its own states.
Goodput goodput_of_run(const Scenario& scenario, const GrpoPrediction& p, double steps) {
  const Failures& f = scenario.grpo->failures;
  const double written = p.memory.learner.start / scenario.engine->sync.write.number();
  JobCourse course = course_of(f, scenario.cluster);
  course.step = p.step_time.value;
  course.steps = steps;
  course.save = f.save.value > 0 ? f.save.value : written;
  course.restart = f.notice.value + f.start.value_or(p.start_up).value;
  return goodput_of(course);
}

// Compares the run with the same one without failures.
EngineLosses losses_of_engines(const Scenario& scenario, CauseSet free, const GrpoPrediction& p) {
  Scenario unbroken = scenario;
  Seconds& mtbf = unbroken.grpo->engine_mtbf;
  const double measured =
      p.step_time.value * static_cast<double>(scenario.grpo->measured_steps - 1);
  const double expected = measured * static_cast<double>(p.placement.engines.size()) / mtbf.value;
  mtbf = {};
  return {.seen = p.run.engine_failures,
          .expected = expected,
          .unbroken = predict_grpo(unbroken, {.free = free}).step_time};
}

void warn_of_few_failures(const Scenario& scenario, GrpoPrediction& p) {
  if (!p.engine_losses || p.engine_losses->expected >= 1) return;
  constexpr double enough = 10, most_steps = 100000, tens = 10;
  const double steps =
      enough / p.engine_losses->expected * static_cast<double>(scenario.grpo->measured_steps - 1);
  const std::string more = steps < most_steps
                               ? fmt::format("; job.measured_steps: {:.0f} has {:.0f}",
                                             tens * std::ceil(steps / tens), enough)
                               : "";
  p.warnings.push_back(
      fmt::format("{:.2g} failures of engines are expected in the steps measured, which say little "
                  "of what failures cost{}",
                  p.engine_losses->expected, more));
}

void add_run_warnings(const Scenario& scenario, GrpoPrediction& p) {
  warn_of_few_failures(scenario, p);
  constexpr double patience = 120;  // open-instruct's WEIGHT_SYNC_TIMEOUT
  if (p.sync > patience)
    p.warnings.push_back(
        fmt::format("a weight sync of {} is longer than open-instruct's time limit of 120 s",
                    to_text(Seconds{p.sync})));
  if (p.preemptions >= 1)
    p.warnings.push_back(
        fmt::format("the cache of the engines runs over: {:.0f} preemptions a step, {:.0f} tokens "
                    "computed again",
                    p.preemptions, p.recomputed));
  // If learners have one pack each, they have nothing to put into a longer one.
  const bool several = p.packs > 1.5 * static_cast<double>(packers_of(scenario));
  if (several && p.phases.communication > 0.1 * p.training && p.phases.compute > 0) {
    const double balance = static_cast<double>(scenario.grpo->pack_length) *
                           (1 + p.phases.communication / p.phases.compute);
    p.warnings.push_back(
        fmt::format("packs of {} tokens are too short to hide the learners' traffic: longer ones, "
                    "up to about {:.0f}, cost little time",
                    scenario.grpo->pack_length, 1000 * std::round(balance / 1000)));
  }
  if (p.packs < 1)
    p.warnings.emplace_back(
        "nothing is trained: the responses fill fewer packs than there are learners, and what is "
        "behind "
        "the last multiple of the learners is left over");
  if (p.responses < 0.9 * scenario.grpo->responses())
    p.warnings.push_back(fmt::format("a step trains on {:.0f} of {:.0f} responses", p.responses,
                                     scenario.grpo->responses()));
}

// These models are trained, or read along.
struct Learners {
  TrainingReplays policy;
  std::optional<TrainingReplays> critic;
  bool alone = false;  // the critic has GPUs of its own
  std::vector<std::pair<GrpoModel, PassReplays>> passes{};

  // Returns the states on a GPU of the policy.
  LearnerStates states() const {
    LearnerStates all = policy.states();
    if (critic && !alone) all += critic->states();
    return all;
  }
};

// Whoever reads a call's rows before they are trained on.
std::vector<GrpoModel> readers_of(const Grpo& grpo) {
  std::vector<GrpoModel> models;
  if (grpo.rollout_at_once == 0) return models;
  if (grpo.scores()) models.push_back(GrpoModel::policy);
  if (grpo.reference_model) models.push_back(GrpoModel::reference);
  if (grpo.critic) models.push_back(GrpoModel::critic);
  if (grpo.reward_model) models.push_back(GrpoModel::reward);
  return models;
}

Learners learners_at_work(const Scenario& scenario, const Replaying& how) {
  const Grpo& grpo = *scenario.grpo;
  const Passes passes = grpo.rollout_at_once > 0 ? Passes::update : Passes::all;
  Learners learners{TrainingReplays(scenario, how, GrpoModel::policy, passes), {}};
  Replaying more = how;
  more.player = how.player.for_more();
  if (grpo.critic) learners.critic.emplace(scenario, more, GrpoModel::critic, passes);
  learners.alone = stands_alone(scenario, GrpoModel::critic);
  for (const GrpoModel model : readers_of(grpo))
    learners.passes.emplace_back(model, PassReplays(scenario, more, model));
  return learners;
}

// A frozen model that stands beside another one reads where that is.
std::size_t servers_of(const Scenario& scenario, GrpoModel model) {
  const bool alone = stands_alone(scenario, model);
  const bool beside_critic =
      model == GrpoModel::reward && stands_alone(scenario, GrpoModel::critic);
  return alone || beside_critic ? packers_of(scenario, model) : 0;
}

// Learners have the whole model while they generate if it was gathered for that; else they gather
// it layer by layer in every pass, and so for every token.
Scenario generating(const Scenario& scenario) {
  Scenario learner = scenario;
  if (!gathers_for_generation(scenario)) return learner;
  learner.strategy.sharding = Sharding::zero2;
  learner.strategy.parameter_place = Offload::none;
  return learner;
}

// Returns passes of the learners as steps of their generate(); lengths come again and again.
OwnPass own_pass(const Scenario& scenario, const Replaying& how) {
  const double share = scenario.engine->host.pass.number();
  return [replays = std::make_shared<PassReplays>(generating(scenario), how, GrpoModel::policy),
          known = std::make_shared<std::map<double, PassTime>>(), share](double tokens) {
    const auto [place, first] = known->try_emplace(tokens);
    if (!first) return place->second;
    const PassTime pass = replays->time(tokens);
    return place->second = {std::max(pass.device, share * pass.all), pass.device};
  };
}

// An engine is as fast as its slowest GPU.
std::vector<double> engine_speeds(const Cluster& cluster, const Placement& placement) {
  std::vector<double> speeds;
  for (const Group& engine : placement.engines) {
    double& speed = speeds.emplace_back(1);
    for (const Rank rank : engine)
      if (rank < cluster.speeds.size()) speed = std::min(speed, cluster.speeds[rank]);
  }
  return speeds;
}

GrpoRun run_actors(const Scenario& scenario, const DecodeModel& decode, Learners& learners,
                   const Player& player, GrpoPrediction& p) {
  const Grpo& grpo = *scenario.grpo;
  EngineLimits limits = limits_of(decode, *scenario.engine, grpo);
  const bool whole = scenario.engine->scheduler.order == StepOrder::whole_batches;
  if (scenario.engine->own_weights && !whole) limits.cache = p.memory.cache_tokens;
  // If engines and learners take turns, an engine is given all that it is to generate. Ahead of
  // them it takes what it reports itself: sequences of full length that its share of memory would
  // hold, were there no weights.
  if (limits.admitted == 0 && grpo.layout == GrpoLayout::colocated)
    limits.admitted = std::numeric_limits<std::int64_t>::max() / 2;
  if (limits.admitted == 0)
    limits.admitted = std::max<std::int64_t>(
        grpo.samples, static_cast<std::int64_t>(grpo.memory_utilization * p.memory.engine_capacity *
                                                static_cast<double>(grpo.tensor_parallel) /
                                                decode.bytes_per_token() / p.memory.full_sequence));
  TrainingParts all;
  std::vector<Scorer> scorers;
  scorers.reserve(learners.passes.size());
  for (auto& [model, pass] : learners.passes)
    scorers.push_back({servers_of(scenario, model),
                       [&replays = pass](double tokens) { return replays.seconds(tokens); }});
  const auto train_critic = [&](std::span<const double> tokens) {
    const TrainingParts beside = learners.critic->parts(tokens);
    p.critic_parts += beside;
    return Seconds{beside.seconds};
  };
  GrpoRun run = run_grpo(
      {.grpo = grpo,
       .decode = decode,
       .limits = limits,
       .engines = p.placement.engines.size(),
       .speeds = engine_speeds(scenario.cluster, p.placement),
       .learners = packers_of(scenario),
       .training =
           [&](std::span<const double> tokens) {
             const TrainingParts parts = learners.policy.parts(tokens);
             all += parts;
             if (!learners.critic || learners.alone) return Seconds{parts.seconds};
             return Seconds{parts.seconds} + train_critic(tokens);
           },
       .sync = p.sync_replay.cost,
       .scorers = std::move(scorers),
       .beside = learners.alone ? TrainingCost(train_critic) : TrainingCost(),
       .beside_learners = learners.alone ? packers_of(scenario, GrpoModel::critic) : 0,
       .whole_batches = whole,
       .in_step =
           facts_of(scenario.strategy).gathers_parameters && !gathers_for_generation(scenario),
       .failures = {.mtbf = grpo.engine_mtbf.value,
                    .notice = grpo.failures.notice.value,
                    .start = grpo.engine_start.value_or(Seconds{start_up(scenario, decode)}).value,
                    .seed = grpo.failures.seed},
       .reference = replay_return(scenario, p.placement, learners.states().waiting(grpo),
                                  player.for_more())});
  p.training_parts = all;
  return run;
}

}  // namespace

std::span<const PhaseSpec> phase_specs() {
  return all_phases;
}

GrpoPrediction predict_grpo(const Scenario& scenario, const Replaying& how) {
  const Grpo& grpo = *scenario.grpo;
  GrpoPrediction p;
  p.placement = place(scenario.cluster, grpo);
  p.warnings = grpo_warnings(scenario, p.placement);
  for (const NamedConstant& constant : scenario.constants)
    if (constant.grade == Grade::guess) p.guesses.push_back(constant);
  Learners learners = learners_at_work(scenario, how);
  p.memory = grpo_memory(scenario);
  if (!p.memory.holds_one()) return p;
  DecodeModel decode = decode_of(scenario);
  if (how.free.has(Cause::generation))
    decode.set_free();
  else if (scenario.engine->own_weights)
    decode.take_passes(own_pass(scenario, {.free = how.free, .player = how.player.for_more()}));
  if (!how.free.has(Cause::weight_sync) &&
      (!scenario.engine->own_weights || gathers_for_generation(scenario)))
    p.sync_replay =
        replay_sync(scenario, p.placement, turn_bytes(scenario, learners.states()), how.player);
  p.run = run_actors(scenario, decode, learners, how.player, p);
  p.ran = true;
  p.played_by = p.sync_replay.played_by;
  if (const auto& by = learners.policy.played_by()) p.played_by = together(p.played_by, *by);
  measure_steps(scenario, p);
  if (scenario.engine->own_weights && !how.free.has(Cause::generation))
    p.generation = parts_of_calls(scenario, decode, p);
  const double trained = p.training - p.phases.reference;
  const double critic = learners.alone ? 0 : p.critic_parts.seconds;
  const double in_turn = critic > 0 ? trained * critic / (p.training_parts.seconds + critic) : 0;
  split_training(p.training_parts, trained - in_turn, p.phases);
  p.phases.critic += in_turn;
  measure_card(scenario, p);
  p.bottleneck = bottleneck_of(p);
  p.start_up = {start_up(scenario, decode)};
  const double steps = std::floor(grpo.total_episodes / grpo.responses());
  if (steps > 0) p.wall = p.start_up + p.first_step + p.step_time * (steps - 1);
  if (grpo.failures.any()) p.goodput = goodput_of_run(scenario, p, steps);
  if (grpo.engine_mtbf.value > 0) p.engine_losses = losses_of_engines(scenario, how.free, p);
  if (p.goodput && steps > 0) p.wall += p.goodput->wall - p.step_time * steps;
  add_run_warnings(scenario, p);
  return p;
}

std::vector<GrpoMetric> grpo_metrics(const GrpoPrediction& p) {
  const double step = p.step_time.value;
  std::vector<GrpoMetric> metrics{
      {"step_time_s", "one step, mean behind the warm-up", step, Dimension::seconds},
      {"steps_per_second", "optimizer steps", 1 / step},
      {"responses_per_second", "trained on", p.responses_per_second},
      {"generated_tokens_per_second", "by all engines", p.generated_per_second},
      {"trained_tokens_per_second", "with their prompts", p.trained_per_second},
      {"training_time_s", "learners, in a step", p.training, Dimension::seconds},
      {"sync_time_s", "weights to the engines, in a step", p.sync, Dimension::seconds},
      {"learner_utilisation", "share of the time in which learners train", p.learner_busy},
      {"engine_utilisation", "share of the time in which engines are not empty", p.engine_busy},
      {"card_utilisation", "share of the time in which the first learner's card is busy",
       p.card_busy},
      {"running_sequences", "on an engine, mean over time", p.running_sequences},
      {"mean_staleness", "steps between generation and training", p.staleness},
      {"max_staleness", "the most of it", p.most_stale},
      {"stale_share", "of the tokens: thrown away as too old", p.stale_share},
      {"filtered_share", "of the tokens: in groups without a signal", p.filtered_share},
      {"given_up_share", "of the tokens: not done, or too many", p.given_up_share},
      {"gpu_hours_per_1000_responses", "what a thousand responses cost", p.gpu_hours_per_1000},
      {"learner_peak_bytes", "of a GPU that trains", p.memory.learner.most(), Dimension::bytes},
  };
  for (const PhaseSpec& phase : all_phases)
    metrics.push_back({fmt::format("phase_{}_s", phase.key), std::string(phase.text),
                       p.phases.*phase.seconds, Dimension::seconds});
  return metrics;
}

}  // namespace stepsim
