#include "cli/grpo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cli/engine_options.hpp"
#include "cli/next_steps_text.hpp"
#include "cli/run_output.hpp"
#include "cli/taken_text.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

std::string seconds(double value) {
  return to_text(Seconds{value});
}

std::string gpus(std::size_t count) {
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

std::string sharers(const Scenario& scenario) {
  std::string text;
  const std::int64_t sequence = scenario.strategy.sequence_parallel.ranks();
  const std::int64_t layers = scenario.strategy.tensor_parallel.size;
  if (sequence > 1) text += fmt::format(", {} to a sequence", sequence);
  if (layers > 1) text += fmt::format(", {} to a layer", layers);
  return text;
}

std::string title(const Scenario& scenario, const Placement& placement) {
  const Grpo& grpo = *scenario.grpo;
  std::string text =
      fmt::format("{}\n{} on {} x {} over {}\n", scenario.name, scenario.model.name,
                  scenario.cluster.nodes, scenario.cluster.node.name,
                  scenario.cluster.network ? scenario.cluster.network->title : "one node");
  text += fmt::format("{} learner{}{}, {} engine{} of {}", placement.learners.size(),
                      placement.learners.size() == 1 ? "" : "s", sharers(scenario),
                      placement.engines.size(), placement.engines.size() == 1 ? "" : "s",
                      gpus(grpo.tensor_parallel));
  if (grpo.layout == GrpoLayout::colocated) text += ", in turn on the same GPUs";
  if (placement.stranded > 0) text += fmt::format(", {} idle", gpus(placement.stranded));
  text += fmt::format("; {} prompts x {} responses a step", grpo.prompts, grpo.samples);
  if (grpo.round_prompts > 0)
    text += fmt::format(", out of rounds of {} prompts", grpo.round_prompts);
  return text + "\n";
}

std::string phase_table(const GrpoPrediction& p) {
  TextTable table{{"where the time goes", " seconds", " share"}};
  for (const PhaseSpec& phase : phase_specs())
    if (const double value = p.phases.*phase.seconds; value > 0)
      table.rows.push_back(
          {std::string(phase.text), seconds(value), percent(value / p.step_time.value)});
  return render(table);
}

std::string staleness_bound_text(const Grpo& grpo) {
  const auto bound = grpo.staleness_bound();
  return bound ? fmt::format("async_steps bounds it to {}", *bound)
               : std::string("drop_stale_results: false, so nothing bounds it");
}

std::string interval_text(const std::optional<Interval>& interval) {
  if (!interval) return "; --samples 16 adds an interval";
  return fmt::format("; likely {} to {}, by {} draws of the constants",
                     to_text(Seconds{interval->step_time.low}),
                     to_text(Seconds{interval->step_time.high}), interval->samples);
}

// Writes at most so many lines of figures.
std::string rates(const Scenario& scenario, const GrpoPrediction& p,
                  const std::optional<Interval>& interval, std::size_t most) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    if (most > 0) text += labelled(name, value);
    most -= std::min<std::size_t>(most, 1);
  };
  line("step time",
       fmt::format("{} in steady state ({:.3g} steps/s), mean of {} steps behind {} of warm-up{}",
                   to_text(p.step_time), 1 / p.step_time.value, scenario.grpo->measured_steps - 1,
                   scenario.grpo->warmup_steps(), interval_text(interval)));
  line("first step",
       fmt::format("{} after {} of start-up", to_text(p.first_step), to_text(p.start_up)));
  if (p.wall.value > 0) line("whole job", to_text(p.wall));
  line("bottleneck", p.bottleneck);
  line("rates", fmt::format("{:.2f} responses/s, {:.0f} tok/s generated, {:.0f} tok/s trained, "
                            "{:.2f} GPU-hours per 1000 responses",
                            p.responses_per_second, p.generated_per_second, p.trained_per_second,
                            p.gpu_hours_per_1000));
  line("learners",
       fmt::format("{} of the time in training; {:.0f} packs a step, {} of the tokens left over",
                   percent(p.learner_busy, 0), p.packs, percent(p.dropped_share, 0)));
  if (p.card_busy > 0)
    line("network", fmt::format("the first learner's card carries something {} of the time",
                                percent(p.card_busy, 0)));
  line("engines",
       fmt::format("{} of the time not empty, {:.1f} sequences each ({:.0f} of full length fit)",
                   percent(p.engine_busy, 0), p.running_sequences, p.memory.cached_sequences));
  if (const StepParts& g = p.generation; g.all() > 0)
    line("generation", fmt::format("{} of its time launches that GPUs wait for, {} forward passes, "
                                   "{} the cache and its copies, {} tokens drawn",
                                   percent(g.launches / g.all(), 0), percent(g.passes / g.all(), 0),
                                   percent(g.cache / g.all(), 0), percent(g.between / g.all(), 0)));
  line("off-policy",
       fmt::format(
           "{:.1f} steps on average, {:.0f} at most ({}); {} of the responses saw more than "
           "one version",
           p.staleness, p.most_stale, staleness_bound_text(*scenario.grpo), percent(p.mixed, 0)));
  if (p.stale_share + p.filtered_share > 0)
    line("thrown away", fmt::format("{} of the tokens as too old, {} in groups without a signal",
                                    percent(p.stale_share, 0), percent(p.filtered_share, 0)));
  if (p.given_up_share > 0)
    line("given up", fmt::format("{} of the tokens, in groups not done in time or too many",
                                 percent(p.given_up_share, 0)));
  if (p.goodput) line("goodput", goodput_text(*p.goodput));
  if (p.engine_losses)
    line("failures",
         fmt::format("of engines: {} in the run, {:.2g} expected in the steps measured; where none "
                     "fails a step takes {}",
                     p.engine_losses->seen, p.engine_losses->expected,
                     to_text(p.engine_losses->unbroken)));
  if (p.truncated > 0) line("truncated", percent(p.truncated, 0) + " of the responses");
  return text;
}

std::string gb(double bytes) {
  return bytes > 0 ? to_text(Bytes{bytes}) : "-";
}

std::string memory_table(const GrpoMemory& m) {
  TextTable table{{"memory", " start", " training", " sync", " usable"}};
  const auto row = [&](std::string_view name, const MomentBytes& bytes, double capacity) {
    table.rows.push_back(
        {std::string(name), gb(bytes.start), gb(bytes.training), gb(bytes.sync), gb(capacity)});
  };
  row("learner GPU", m.learner, m.learner_capacity);
  row("engine GPU", m.engine, m.engine_capacity);
  row("host of a node", m.host, m.host_capacity);
  return render(table) +
         fmt::format(
             "\nan engine's cache holds {:.0f} tokens: {:.0f} sequences of full length\n{}\n",
             m.cache_tokens, m.cached_sequences,
             m.failure ? "does not fit: " + *m.failure : "fits");
}

std::string remarks(const Scenario& scenario, const GrpoPrediction& p) {
  std::string text;
  for (const std::string& warning : p.warnings) text += fmt::format("\nwarning: {}", warning);
  for (const std::string& note : scenario.notes) text += fmt::format("\nnote: {}", readable(note));
  if (!p.guesses.empty())
    text += fmt::format("\nnote: {} of the constants behind this are guesses", p.guesses.size());
  return text.empty() ? text : text + "\n";
}

Records moment_records(const MomentBytes& m, double capacity) {
  return {{"start_bytes", "once it runs", Bytes{m.start}},
          {"training_bytes", "at the peak of training", Bytes{m.training}},
          {"sync_bytes", "at the peak of a weight sync", Bytes{m.sync}},
          {"capacity_bytes", "that it has", Bytes{capacity}}};
}

}  // namespace

std::string grpo_head(const Scenario& scenario, const GrpoPrediction& p,
                      const std::optional<Interval>& interval) {
  const std::string answer =
      p.ran ? fmt::format("{} a step{}; {}", to_text(p.step_time), likely_text(interval),
                          p.memory.failure ? "does not fit: " + *p.memory.failure : "it fits")
            : fmt::format("does not fit: {}", p.memory.failure.value_or(""));
  return title_line(scenario) + labelled("answer", answer);
}

std::string grpo_text(const Scenario& scenario, const GrpoPrediction& p,
                      const std::optional<Interval>& interval) {
  constexpr std::size_t all = 100;
  std::string text = taken_paragraph(scenario) + not_modelled_paragraph(scenario) + "\n" +
                     title(scenario, p.placement) + "\n";
  if (p.ran) text += rates(scenario, p, interval, all) + "\n" + phase_table(p) + "\n";
  return text + memory_table(p.memory) + remarks(scenario, p);
}

std::string grpo_screen(const Scenario& scenario, const GrpoPrediction& p,
                        const std::optional<Interval>& interval, const std::vector<OpenValue>& open,
                        std::size_t most) {
  std::string text = taken_paragraph(scenario) + not_modelled_paragraph(scenario) +
                     open_values_table(open, most) + "\n";
  if (p.ran) text += rates(scenario, p, interval, 2 * most) + "\n" + phase_table(p) + "\n";
  text += memory_table(p.memory);
  for (const std::string& warning : p.warnings) text += "\n" + labelled("warning", warning);
  return text + labelled("", fmt::format("{} notes, {} constants are guesses; --full prints "
                                         "everything",
                                         scenario.notes.size(), p.guesses.size()));
}

std::string grpo_brief_text(const GrpoPrediction& p, const std::optional<Interval>& interval) {
  if (!p.ran) return fmt::format("does not fit: {}\n", p.memory.failure.value_or(""));
  return fmt::format("{} a step{}, {:.0f} tok/s trained, {:.2f} GPU-hours per 1000 responses; {}\n",
                     to_text(p.step_time), likely_text(interval), p.trained_per_second,
                     p.gpu_hours_per_1000,
                     p.memory.failure ? "does not fit: " + *p.memory.failure : "fits");
}

Records grpo_records(const Scenario& scenario, const GrpoPrediction& p,
                     const std::optional<Interval>& interval) {
  const auto ran = [&](auto value) { return p.ran ? std::optional(value) : std::nullopt; };
  const auto wall = p.wall.value > 0 ? std::optional(p.wall.value / 3600) : std::nullopt;
  const auto steps = interval ? std::optional(interval->step_time) : std::nullopt;
  const Interval drawn = interval.value_or(Interval{});
  const auto bound = scenario.grpo ? scenario.grpo->staleness_bound() : std::nullopt;
  const auto warmup = scenario.grpo ? scenario.grpo->warmup_steps() : 0;
  Records rates;
  for (const GrpoMetric& metric : grpo_metrics(p))
    rates.emplace_back(metric.name, metric.meaning, ran(metric.value),
                       measure_of(metric.dimension));
  return joined(
      {rates,
       {{"learners", "GPUs that train", p.placement.learners.size()},
        {"engines", "inference engines", p.placement.engines.size()},
        {"stranded_gpus", "GPUs that do neither", p.placement.stranded},
        {"gpus", "of all of them", scenario.cluster.ranks()},
        {"interval_s", "8 of 10 draws: step time", steps, Measure::seconds},
        {"drawn_s", "step time of each", list_of(drawn.step_times, std::identity())},
        {"drawn_tokens_per_second_per_gpu", "trained, of each",
         list_of(drawn.throughputs, std::identity())},
        {"wall_h", "the whole job", wall, Measure::hours},
        {"staleness_bound", "steps; null: nothing bounds it", bound},
        {"first_step_s", "with the first sync", ran(p.first_step)},
        {"start_up_s", "until engines take prompts", ran(p.start_up)},
        {"warmup_steps", "left out of the means", ran(warmup)},
        {"preemptions_per_step", "of sequences on engines", ran(p.preemptions)},
        {"truncated_share", "of responses: cut at the limit", ran(p.truncated), Measure::share},
        {"mixed_share", "of responses: by several versions", ran(p.mixed), Measure::share}},
       goodput_records(p.goodput),
       {{"engine_failures", "in the whole run",
         p.engine_losses ? std::optional(p.engine_losses->seen) : std::nullopt},
        {"expected_engine_failures", "in measured steps",
         p.engine_losses ? std::optional(p.engine_losses->expected) : std::nullopt},
        {"unbroken_step_time_s", "a step where no engine fails",
         p.engine_losses ? std::optional(p.engine_losses->unbroken) : std::nullopt},
        {"events", "that were handled", ran(p.run.events)},
        {"bottleneck", "what the step waits for most", ran(p.bottleneck)}},
       grpo_memory_records(p.memory),
       {{"warnings", "what is not as it should be", list_of(p.warnings)}}});
}

Records grpo_sample() {
  const std::optional<Interval> none;
  return joined(
      {grpo_records({}, {}, none),
       {cost_record({1.0, 1.0}, {{1}, {1}, 1, 1}),
        played_record(PlayedBy{.difference = 0.0, .energy_difference = 0.0}), faster_sample(),
        fitting_record(FittingSteps{{NextStep{}}, {NextStep{}}, {NextStep{}}})}});
}

Records grpo_memory_sample() {
  return joined(
      {grpo_memory_records({}), fitting_records({{NextStep{}}, {NextStep{}}, {NextStep{}}})});
}

std::string grpo_memory_text(const Scenario& scenario, const GrpoMemory& memory) {
  return title(scenario, place(scenario.cluster, *scenario.grpo)) + "\n" + memory_table(memory);
}

Records grpo_memory_records(const GrpoMemory& m) {
  return {{"verdict", "fits or oom", m.failure ? "oom" : "fits"},
          {"reason", "the first thing that does not fit", m.failure},
          {"memory", "at three moments",
           Records{{"learner", "a GPU that trains", moment_records(m.learner, m.learner_capacity)},
                   {"engine", "a GPU that generates", moment_records(m.engine, m.engine_capacity)},
                   {"host", "a node's host", moment_records(m.host, m.host_capacity)},
                   {"cache_tokens", "that an engine's cache holds", m.cache_tokens}}}};
}

}  // namespace stepsim
