#include "cli/grpo.hpp"

#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/base/table.hpp"

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
  text += fmt::format("{} learners{}, {} engines of {}", placement.learners.size(),
                      sharers(scenario), placement.engines.size(), gpus(grpo.tensor_parallel));
  if (grpo.layout == GrpoLayout::colocated) text += ", in turn on the same GPUs";
  if (placement.stranded > 0) text += fmt::format(", {} idle", gpus(placement.stranded));
  return text + fmt::format("; {} prompts x {} responses a step\n", grpo.prompts, grpo.samples);
}

std::string phase_table(const GrpoPrediction& p) {
  TextTable table{
      {"where the time goes", "seconds", "share"}, {Align::left, Align::right, Align::right}, {}};
  for (const PhaseSpec& phase : phase_specs()) {
    const double value = p.phases.*phase.seconds;
    if (value > 0)
      table.rows.push_back({std::string(phase.text), seconds(value),
                            fmt::format("{:.1f} %", 100 * value / p.step_time.value)});
  }
  return render(table);
}

std::string staleness_bound_text(const Grpo& grpo) {
  const auto bound = grpo.staleness_bound();
  return bound ? fmt::format("async_steps bounds it to {}", *bound)
               : std::string("drop_stale_results: false, so nothing bounds it");
}

std::string interval_text(const std::optional<Interval>& interval) {
  if (!interval) return "; --samples 16 adds an interval";
  return fmt::format("; {} to {} in 8 of 10 of {} draws of the constants",
                     to_text(Seconds{interval->step_time.low}),
                     to_text(Seconds{interval->step_time.high}), interval->samples);
}

std::string rates(const Scenario& scenario, const GrpoPrediction& p,
                  const std::optional<Interval>& interval) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
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
  line("off-policy",
       fmt::format(
           "{:.1f} steps on average, {:.0f} at most ({}); {} of the responses saw more than "
           "one version",
           p.staleness, p.most_stale, staleness_bound_text(*scenario.grpo), percent(p.mixed, 0)));
  if (p.stale_share + p.filtered_share > 0)
    line("thrown away", fmt::format("{} of the tokens as too old, {} in groups without a signal",
                                    percent(p.stale_share, 0), percent(p.filtered_share, 0)));
  if (p.truncated > 0) line("truncated", percent(p.truncated, 0) + " of the responses");
  return text;
}

std::string gb(double bytes) {
  return bytes > 0 ? to_text(Bytes{bytes}) : "-";
}

std::string memory_table(const GrpoMemory& m) {
  TextTable table{{"memory", "start", "training", "sync", "usable"},
                  {Align::left, Align::right, Align::right, Align::right, Align::right},
                  {}};
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
  for (const std::string& note : scenario.notes) text += fmt::format("\nnote: {}", note);
  if (!p.guesses.empty())
    text += fmt::format("\nnote: {} of the constants behind this are guesses", p.guesses.size());
  return text.empty() ? text : text + "\n";
}

void write_moments(JsonWriter& json, std::string_view name, const MomentBytes& m, double capacity) {
  json.key(name)
      .begin_object()
      .member("start_bytes", m.start)
      .member("training_bytes", m.training)
      .member("sync_bytes", m.sync)
      .member("capacity_bytes", capacity)
      .end_object();
}

void write_memory(JsonWriter& json, const GrpoMemory& m) {
  json.member("verdict", m.failure ? "oom" : "fits").key("reason");
  if (m.failure)
    json.value(*m.failure);
  else
    json.null();
  json.key("memory").begin_object();
  write_moments(json, "learner", m.learner, m.learner_capacity);
  write_moments(json, "engine", m.engine, m.engine_capacity);
  write_moments(json, "host", m.host, m.host_capacity);
  json.member("cache_tokens", m.cache_tokens).end_object();
}

}  // namespace

std::string grpo_text(const Scenario& scenario, const GrpoPrediction& p,
                      const std::optional<Interval>& interval) {
  std::string text = title(scenario, p.placement) + "\n";
  if (p.ran) text += rates(scenario, p, interval) + "\n" + phase_table(p) + "\n";
  return text + memory_table(p.memory) + remarks(scenario, p);
}

std::string grpo_json(const Scenario& scenario, const GrpoPrediction& p,
                      const std::optional<Interval>& interval) {
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, value] : grpo_metrics(p)) json.member(name, value);
  if (!p.ran) json.key("step_time_s").null();
  json.member("learners", static_cast<double>(p.placement.learners.size()))
      .member("engines", static_cast<double>(p.placement.engines.size()))
      .member("stranded_gpus", static_cast<double>(p.placement.stranded));
  json.key("interval_s");
  if (interval)
    json.begin_array().value(interval->step_time.low).value(interval->step_time.high).end_array();
  else
    json.null();
  json.key("wall_h");
  p.wall.value > 0 ? json.value(p.wall.value / 3600) : json.null();
  json.key("staleness_bound");
  if (const auto bound = scenario.grpo->staleness_bound())
    json.value(static_cast<double>(*bound));
  else
    json.null();
  if (p.ran)
    json.member("first_step_s", p.first_step.value)
        .member("start_up_s", p.start_up.value)
        .member("warmup_steps", static_cast<double>(scenario.grpo->warmup_steps()))
        .member("preemptions_per_step", p.preemptions)
        .member("truncated_share", p.truncated)
        .member("mixed_share", p.mixed)
        .member("events", static_cast<double>(p.run.events))
        .member("bottleneck", p.bottleneck);
  write_memory(json, p.memory);
  json.key("warnings").begin_array();
  for (const std::string& warning : p.warnings) json.value(warning);
  json.end_array().end_object();
  return json.take();
}

std::string grpo_memory_text(const Scenario& scenario, const GrpoMemory& memory) {
  return title(scenario, place(scenario.cluster, *scenario.grpo)) + "\n" + memory_table(memory);
}

std::string grpo_memory_json(const GrpoMemory& memory) {
  JsonWriter json;
  json.begin_object();
  write_memory(json, memory);
  json.end_object();
  return json.take();
}

}  // namespace stepsim
