#include "analysis/studies/predict/replayed_step.hpp"

#include <optional>

#include "analysis/energy.hpp"
#include "sim/budget.hpp"
#include "sim/repetition.hpp"
#include "workloads/strategy/row_lengths.hpp"

namespace stepsim {
namespace {

constexpr double share_of_labels = 0.1;  // of what an operation takes

// A few of a step's micro-batches: with more of them it would do the same again, so many at a time.
struct Few {
  std::int64_t batches = 0, round = 1;

  std::int64_t rounds_left(const Job& job) const { return (job.accumulation - batches) / round; }
};

// Pieces of a stage take turns after as many micro-batches as there are stages; where they come in
// at both ends, they come in pairs.
std::int64_t round_of(const PipelineParallel& pipeline) {
  switch (pipeline.schedule) {
    case PipelineSchedule::interleaved:
    case PipelineSchedule::zb_h1:
      return pipeline.size;
    case PipelineSchedule::dualpipe:
      return 2;
    default:
      return 1;
  }
}

// Enough for a pipeline to fill, do the same twice, and run empty. `alone`: without a pipeline.
Few fewest(const StepInput& input, std::int64_t alone = 5) {
  const PipelineParallel& pipeline = input.strategy.pipeline_parallel;
  Few few{.round = round_of(pipeline)};
  const std::int64_t least = pipeline.size == 1 ? alone
                             : few.round == 1   ? 2 * pipeline.size + 4
                                                : 4 * pipeline.size;
  few.batches = least + (input.job.accumulation - least) % few.round;
  return few;
}

// A few are written twice, and may not repeat themselves: then all are written as well.
constexpr std::int64_t least_saving = 3;

// Returns nothing unless most of the work is saved; nothing repeats where all micro-batches go
// forward first, or where the machine changes meanwhile.
std::optional<Few> first_try(const StepInput& input, const Few& few) {
  if (input.job.only_update || !input.cluster.events.empty() ||
      input.strategy.pipeline_parallel.schedule == PipelineSchedule::gpipe ||
      least_saving * few.batches > input.job.accumulation)
    return std::nullopt;
  return few;
}

std::optional<Few> next_try(const StepInput& input, Few few) {
  few.batches += 2 * (few.batches / few.round) * few.round;
  if (least_saving * few.batches > input.job.accumulation) return std::nullopt;
  return few;
}

// Returns whether a program of three times as many operations is within the budget: a next try that
// is not would be refused as a whole step as well.
bool is_affordable(const StepProgram& last, const Job& job) {
  return 3 * static_cast<double>(last.graph.size()) <= job.budget;
}

void write_few(StepProgram& program, RankPart& rank, std::int64_t batches, CauseSet free,
               Written written = Written::figures) {
  rank.input.written = batches;
  write_step(program, rank, written);
  if (!free.empty()) program.graph = idealised(program.graph, free);
}

// Each further round of micro-batches is as many operations as the last of these few.
std::size_t counted(StepProgram& program, RankPart& rank, const Few& few) {
  const auto count = [&](std::int64_t batches) {
    write_few(program, rank, batches, {});
    return program.graph.size();
  };
  const std::size_t all = count(few.batches), less = count(few.batches - few.round);
  return all + static_cast<std::size_t>(few.rounds_left(rank.input.job)) * (all - less);
}

// Before all micro-batches are written, where they are so many that a few cost little.
void refuse_too_many(StepProgram& program, RankPart& rank, Written written) {
  const Job& job = rank.input.job;
  const Few few = fewest(rank.input);
  if (8 * few.batches > job.accumulation) return;
  const double share = written == Written::memory ? share_of_labels : 1;
  require_budget(share * static_cast<double>(counted(program, rank, few)), job.budget,
                 "take fewer micro-batches (job.gradient_accumulation)");
}

// Plays the program, and has it metered where that is asked for and files say what parts draw.
Trace play(const StepProgram& program, const Cluster& cluster, Watched watched,
           const Replaying& how) {
  const auto power = how.metered ? power_of(cluster) : std::nullopt;
  const Draws draws{.rank = power.value_or(RankPower{})};
  return how.player.play(program.traffic.folded.platform, program.graph, watched,
                         power ? &draws : nullptr);
}

// Replays a few micro-batches and says what comes again. Returns false where nothing does.
bool replay_few(ReplayedStep& step, RankPart& rank, const Few& few, const Replaying& how) {
  StepProgram& program = step.program;
  write_few(program, rank, few.batches - few.round, how.free);
  const OpGraph shorter = std::move(program.graph);
  const double mapped = program.resident.mapped_before_update;
  write_few(program, rank, few.batches, how.free);
  if (mapped != program.resident.mapped_before_update) return false;
  step.trace = play(program, rank.input.cluster, Watched::times, how);
  const auto repeat = find_repeat(shorter, program.graph, step.trace);
  if (!repeat) return false;
  step.trace.repeat = *repeat;
  const std::int64_t rounds = few.rounds_left(rank.input.job);
  step.trace.repeat.more = static_cast<double>(rounds);
  step.trace.makespan.value += step.trace.repeat.added();
  step.operations = program.graph.size() +
                    static_cast<std::size_t>(rounds) * (program.graph.size() - shorter.size());
  return true;
}

void replay_written(ReplayedStep& step, RankPart& rank, Watched watched, const Replaying& how) {
  const Written written = watched == Watched::times ? Written::figures : Written::whole;
  refuse_too_many(step.program, rank, written);
  write_few(step.program, rank, 0, how.free, written);
  step.trace = play(step.program, rank.input.cluster, watched, how);
  step.operations = step.program.graph.size();
}

// The meters saw one rank of each lane, and a stretch that comes again once; so does the integral
// that they are held against.
void compare_energy(ReplayedStep& step, const Cluster& cluster, const Replaying& how) {
  if (step.trace.meters.gpus.empty()) return;
  const std::size_t lanes = step.program.traffic.folded.lane_sizes.size();
  how.player.compare_energy(step.trace,
                            meters_of(step.program.graph, step.trace, lanes, *power_of(cluster)));
}

ReplayedStep replayed(const StepInput& input, const Replaying& how) {
  RankPart rank = rank_part(input);
  ReplayedStep step{.program = prepare_step(rank, how.folding), .trace = {}};
  if (how.folding == Folding::automatic)
    for (auto few = first_try(input, fewest(input)); few && is_affordable(step.program, input.job);
         few = next_try(input, *few))
      if (replay_few(step, rank, *few, how)) return step;
  replay_written(step, rank, Watched::times, how);
  return step;
}

}  // namespace

ReplayedStep replay_step(const StepInput& input, const Replaying& how) {
  ReplayedStep step = replayed(input, how);
  compare_energy(step, input.cluster, how);
  return step;
}

ReplayedStep replay_whole_step(const StepInput& input, const Replaying& how) {
  RankPart rank = rank_part(input);
  ReplayedStep step{.program = prepare_step(rank, how.folding), .trace = {}};
  replay_written(step, rank, Watched::everything, how);
  compare_energy(step, input.cluster, how);
  return step;
}

StepProgram step_for_memory(const StepInput& usual, Written written) {
  StepInput input = usual;
  input.job = full_rows(usual.job);
  RankPart rank = rank_part(input);
  StepProgram program = prepare_step(rank, Folding::automatic);
  // A whole operation is written as fast as four labels.
  if (const auto few = first_try(input, fewest(input));
      few && 4 * few->batches <= input.job.accumulation) {
    write_few(program, rank, few->batches - few->round, {});
    const OpGraph shorter = std::move(program.graph);
    const double mapped = program.resident.mapped_before_update;
    write_few(program, rank, few->batches, {});
    if (mapped == program.resident.mapped_before_update && holds_no_more(shorter, program.graph))
      return program;
  }
  refuse_too_many(program, rank, written);
  write_few(program, rank, 0, {}, written);
  return program;
}

ByCause<double> summed_over_step(const StepInput& input, const SumOfProgram& sum) {
  RankPart rank = rank_part(input);
  StepProgram program = prepare_step(rank, Folding::automatic);
  const auto summed = [&](std::int64_t batches) {
    write_few(program, rank, batches, {}, Written::sums);
    return sum(program);
  };
  constexpr std::int64_t first_last_and_between = 3;
  const auto few = first_try(input, fewest(input, first_last_and_between));
  if (!few) return summed(0);
  const ByCause<double> less = summed(few->batches - few->round);
  const double mapped = program.resident.mapped_before_update;
  ByCause<double> all = summed(few->batches);
  if (mapped != program.resident.mapped_before_update) return summed(0);
  const auto rounds = static_cast<double>(few->rounds_left(input.job));
  for (std::size_t i = 0; i < cause_count; ++i) all[i] += rounds * (all[i] - less[i]);
  return all;
}

std::int64_t micro_batches_written(const StepInput& input) {
  const auto few = first_try(input, fewest(input));
  return few ? 2 * few->batches - few->round : input.job.accumulation;
}

std::size_t count_operations(const StepInput& input) {
  RankPart rank = rank_part(input);
  StepProgram program = prepare_step(rank, Folding::automatic);
  if (const Few few = fewest(input); 2 * few.batches <= input.job.accumulation)
    return counted(program, rank, few);
  write_few(program, rank, 0, {});
  return program.graph.size();
}

}  // namespace stepsim
