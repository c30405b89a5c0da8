// `run`: one step of a scenario.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/studies/grpo/grpo_trace.hpp"
#include "analysis/studies/outcome/interval.hpp"
#include "analysis/studies/predict/footprint_text.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "cli/command.hpp"
#include "cli/grpo.hpp"
#include "cli/options.hpp"
#include "cli/runs.hpp"
#include "cli/source_options.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/table.hpp"
#include "sim/run_file.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs = with_source_options(std::array{
    OptionSpec{"output", "FILE", "write the step as an HDF5 trace", 'o'},
    OptionSpec{"fold", "MODE", "auto or off: simulate one of what is alike, or everything"},
    OptionSpec{"samples", "N",
               "draws of the constants behind the intervals, with the constants that move the step "
               "time most; 0: none (default: 8 for steps of few operations, and intervals alone)"},
    OptionSpec{"set", "KEY=VALUE",
               "instead of what the file says, such as strategy.zero=2; repeats", 0, true},
    OptionSpec{"ideal", "CAUSE", "replay as if this cause cost nothing, such as launch; repeats", 0,
               true},
    OptionSpec{"json", "", "for machines"}});
constexpr Usage usage{
    "stepsim run SCENARIO [options]",
    "Replays one optimizer step of a scenario file operation by operation and prints its time, "
    "where the time goes, and whether it fits into memory. Exit code 1: it does not fit.",
    option_specs,
    "  stepsim run llama32-3b-sft-zero3\n"
    "  stepsim run my.yaml --set strategy.zero=2 --set job.micro_batch=4\n"
    "  stepsim run my.yaml --set cluster.xgmi.bandwidth=100GB/s --ideal launch\n"
    "  stepsim run my.yaml -o step.h5 --json\n",
    1};

// What a step and the run are made of, as trainers count it.
std::string batch_text(const Job& job, const Prediction& p) {
  if (!p.length) return "";
  const RunLength& length = *p.length;
  return fmt::format(
      "batches      {:.10g} {} to a step, {:.10g} steps, {:.10g} micro-batches on each rank{}\n"
      "             {:.3g} micro-batches/s, {:.3g} steps/s\n",
      length.effective_batch, job.method == Method::dpo ? "pairs" : "sequences",
      length.optimizer_steps, length.iterations,
      job.epochs == 1 ? "" : fmt::format(", {:.4g} epochs", job.epochs), p.iterations_per_second,
      1 / p.step_time.value);
}

std::string share_of(Seconds part, Seconds whole) {
  return fmt::format("{:.2g} %", 100 * (part / whole));
}

std::string drives_text(double checkpoint, double room) {
  const double count = std::floor(std::max(0.0, room) / checkpoint);
  if (count < 1)
    return fmt::format("             the drives of a node do not hold its {} of a checkpoint\n",
                       to_text(Bytes{checkpoint}));
  return fmt::format("             the drives of a node hold {:.0f} of its parts of {}\n", count,
                     to_text(Bytes{checkpoint}));
}

// What is written and read between steps, and what of the run that takes.
std::string saving_text(const Scenario& scenario, const Prediction& p) {
  const Job& job = scenario.job;
  std::string text;
  if (p.saving) {
    const Checkpoint& files = p.saving->files;
    text += fmt::format("saving       every {:.10g} steps: {} in {:.0f} files", job.save.every,
                        to_text(Bytes{files.bytes()}), files.files);
    if (files.states > 0)
      text += fmt::format(", {} of states by each of {} GPUs", to_text(Bytes{files.states}),
                          files.owners);
    text += fmt::format("\n             training waits {} each time", to_text(p.saving->time));
    if (p.wall.value > 0)
      text += fmt::format(", {:.0f} times, {} of the whole job", p.saving->count,
                          share_of(p.saving->time * p.saving->count, p.wall));
    text += '\n';
    if (const double room = p.memory.disk_capacity - p.memory.disk; p.memory.disk_capacity > 0)
      text += drives_text(files.on_a_node(scenario.cluster.gpus_per_node()), room);
  }
  if (p.resuming)
    text += fmt::format(
        "resuming     after {:.10g} steps: reads {}, makes {:.0f} micro-batches again, {}\n",
        job.resume.after, to_text(Bytes{p.resuming->bytes}), p.resuming->skipped,
        to_text(p.resuming->time));
  return text;
}

std::string movers_table(const std::vector<Mover>& movers, std::string_view what,
                         std::string_view figure) {
  if (movers.empty()) return "";
  TextTable table{{fmt::format("{} is moved most by", what), "stated", "from", "to", "grade",
                   std::string(figure)},
                  {Align::left, Align::right, Align::right, Align::right, Align::left, Align::left},
                  {}};
  for (const auto& [constant, at_low, at_high] : movers)
    table.rows.push_back(
        {constant.name, value_text(constant, constant.value), value_text(constant, constant.low),
         value_text(constant, constant.high), std::string(to_text(constant.grade)),
         fmt::format("{} to {}", to_text(Seconds{at_low}), to_text(Seconds{at_high}))});
  return "\n" + render(table);
}

std::string movers_text(const Interval& interval) {
  return movers_table(interval.movers, "the step time", "step time") +
         movers_table(interval.wall_movers, "the number of steps", "whole job");
}

std::string range_text(const NamedConstant& constant) {
  if (constant.words.empty())
    return fmt::format("{} to {}", value_text(constant, constant.low),
                       value_text(constant, constant.high));
  return fmt::format("{}", fmt::join(constant.words, " or "));
}

// What the scenario itself says it does not know.
std::string unknown_text(const Scenario& scenario) {
  constexpr std::string_view own = "scenario.";
  TextTable table{
      {"not known of this run", "taken", "may be"}, {Align::left, Align::right, Align::left}, {}};
  for (const NamedConstant& constant : scenario.constants)
    if (constant.name.starts_with(own) && constant.low < constant.high)
      table.rows.push_back({constant.name.substr(own.size()), value_text(constant, constant.value),
                            range_text(constant)});
  return table.rows.empty() ? "" : "\n" + render(table);
}

// Where the time goes, cause by cause.
std::string breakdown_text(const Prediction& p) {
  const bool stages = p.memory.stage.count > 0;
  TextTable table{
      {stages ? "mean of all stages" : "where the time goes", "exposed", "share", "hidden"},
      {Align::left, Align::right, Align::right, Align::right},
      {}};
  const auto share = [&](Seconds s) { return fmt::format("{:.1f} %", 100 * (s / p.step_time)); };
  for (const BreakdownRow& row : p.breakdown.rows)
    table.rows.push_back({std::string(to_text(row.cause)), to_text(row.exposed), share(row.exposed),
                          to_text(row.hidden)});
  table.rows.push_back({"idle", to_text(p.breakdown.idle), share(p.breakdown.idle), ""});
  return "\n" + render(table);
}

std::string text_of(const Scenario& scenario, const Prediction& p,
                    const std::optional<Interval>& interval) {
  std::string text =
      fmt::format("{}\n{} on {} x {}, {}\n\n", scenario.name, scenario.model.name,
                  scenario.cluster.nodes, scenario.cluster.node.name, scenario.stack.title);
  if (const std::string groups = to_text(mesh_of(scenario.strategy, scenario.cluster));
      !groups.empty())
    text.insert(text.size() - 1, fmt::format("{} ranks: {}\n", scenario.cluster.ranks(), groups));
  text += assumptions_text(scenario.assumptions);
  text += fmt::format("step time    {}", to_text(p.step_time));
  if (interval)
    text += fmt::format("  ({} to {} in 8 of 10 of {} draws of the constants)",
                        to_text(Seconds{interval->step_time.low}),
                        to_text(Seconds{interval->step_time.high}), interval->samples);
  else
    text += "  (--samples 16 adds an interval)";
  text += '\n';
  text += fmt::format("throughput   {:.0f} tok/s/GPU", p.tokens_per_second_per_gpu);
  if (interval)
    text +=
        fmt::format("  ({:.0f} to {:.0f})", interval->throughput.low, interval->throughput.high);
  text += '\n';
  text += fmt::format(
      "utilisation  {:.1f} % of the bf16 peak ({:.1f} % with attention over whole rows)\n"
      "             {} for {:.0f} FLOP a token and matrix parameter, {} for causal attention;\n"
      "             none for recomputation and padding\n",
      100 * p.utilisation, 100 * p.utilisation_in_rows, to_text(Flops{p.flops.matrices}),
      p.flops.per_parameter, to_text(Flops{p.flops.attention}));
  if (p.wall.value > 0)
    text += fmt::format("{:<13}{}{}\n", p.resuming ? "rest of job" : "whole job", to_text(p.wall),
                        interval ? fmt::format("  ({} to {})", to_text(Seconds{interval->wall.low}),
                                               to_text(Seconds{interval->wall.high}))
                                 : "");
  text += batch_text(scenario.job, p) + saving_text(scenario, p);
  text += breakdown_text(p);
  const Footprint& memory = p.memory;
  text += fmt::format("\nmemory       {} of {} usable: {}\n", to_text(Bytes{memory.needed()}),
                      to_text(Bytes{memory.capacity}), verdict_text(memory));
  text += fmt::format("\n{}\nthe peak is in {}, at {}{}\n",
                      classes_table(memory, scenario.cluster.gpu.title), memory.device.peak.phase,
                      memory.device.peak.name, stage_text(memory));
  text += shown_text(memory) + failure_text(memory) + host_text(memory);
  if (interval) {
    text +=
        fmt::format("over the draws {} to {} are needed\n", to_text(Bytes{interval->memory.low}),
                    to_text(Bytes{interval->memory.high}));
    text += movers_text(*interval);
  }
  text += unknown_text(scenario);
  for (const std::string& note : scenario.notes) text += fmt::format("\nnote: {}", note);
  if (!scenario.notes.empty()) text += '\n';
  if (!p.guesses.empty())
    text += fmt::format("\nnote: {} of the constants behind this are guesses\n", p.guesses.size());
  return text;
}

void write_saving(JsonWriter& json, const Prediction& p) {
  json.key("save");
  if (p.saving) {
    const Checkpoint& files = p.saving->files;
    json.begin_object()
        .member("bytes", files.bytes())
        .member("weight_bytes", files.writers * files.weights)
        .member("state_bytes_per_rank", files.states)
        .member("files", files.files)
        .member("time_s", p.saving->time.value)
        .member("count", p.saving->count);
    json.key("share_of_wall");
    if (p.wall.value > 0)
      json.value(p.saving->time * p.saving->count / p.wall);
    else
      json.null();
    json.end_object();
  } else {
    json.null();
  }
  json.key("resume");
  if (p.resuming)
    json.begin_object()
        .member("bytes", p.resuming->bytes)
        .member("skipped_micro_batches", p.resuming->skipped)
        .member("time_s", p.resuming->time.value)
        .end_object();
  else
    json.null();
}

void write_movers(JsonWriter& json, std::string_view key, const std::vector<Mover>& movers) {
  json.key(key).begin_array();
  for (const Mover& mover : movers)
    json.begin_object()
        .member("constant", mover.constant.name)
        .member("at_low_s", mover.at_low)
        .member("at_high_s", mover.at_high)
        .end_object();
  json.end_array();
}

void write_intervals(JsonWriter& json, const Prediction& p,
                     const std::optional<Interval>& interval) {
  const auto range = [&](std::string_view key, Range Interval::*member, double per = 1) {
    json.key(key);
    if (!interval) {
      json.null();
      return;
    }
    const Range& found = (*interval).*member;
    json.begin_array().value(found.low / per).value(found.high / per).end_array();
  };
  range("interval_s", &Interval::step_time);
  range("tokens_per_second_per_gpu_interval", &Interval::throughput);
  range("peak_memory_interval_bytes", &Interval::memory);
  if (p.wall.value > 0)
    range("wall_interval_h", &Interval::wall, 3600);
  else
    json.key("wall_interval_h").null();
  json.member("samples", interval ? static_cast<double>(interval->samples) : 0.0);
  write_movers(json, "moved_most_by", interval ? interval->movers : std::vector<Mover>{});
  write_movers(json, "wall_moved_most_by", interval ? interval->wall_movers : std::vector<Mover>{});
}

std::string json_of(const Prediction& p, const std::optional<Interval>& interval) {
  JsonWriter json;
  json.begin_object()
      .member("step_time_s", p.step_time.value)
      .member("tokens_per_second_per_gpu", p.tokens_per_second_per_gpu)
      .member("model_flops_utilisation", p.utilisation)
      .member("model_flops_utilisation_attention_in_rows", p.utilisation_in_rows)
      .member("model_flops_matrices", p.flops.matrices)
      .member("model_flops_attention", p.flops.attention);
  write_intervals(json, p, interval);
  if (p.wall.value > 0)
    json.member("wall_h", p.wall.value / 3600);
  else
    json.key("wall_h").null();
  json.key("batches");
  if (p.length)
    json.begin_object()
        .member("effective_batch", p.length->effective_batch)
        .member("optimizer_steps", p.length->optimizer_steps)
        .member("iterations", p.length->iterations)
        .member("epochs", p.length->epochs)
        .member("iterations_per_second", p.iterations_per_second)
        .end_object();
  else
    json.null();
  write_saving(json, p);
  write_footprint(json, p.memory);
  json.member("ops", static_cast<double>(p.run.graph.size()));
  json.key("breakdown").begin_array();
  for (const BreakdownRow& row : p.breakdown.rows)
    json.begin_object()
        .member("cause", to_text(row.cause))
        .member("exposed_s", row.exposed.value)
        .member("hidden_s", row.hidden.value)
        .end_object();
  json.begin_object()
      .member("cause", "idle")
      .member("exposed_s", p.breakdown.idle.value)
      .member("hidden_s", 0.0)
      .end_object();
  json.end_array().end_object();
  return json.take();
}

constexpr std::size_t most_movers = 6;

CauseSet free_causes(const Options& options) {
  const std::vector<std::string> names(cause_names.begin(), cause_names.end());
  CauseSet free;
  for (const auto& [option, word] : options.values) {
    if (option != "ideal") continue;
    const auto place = std::find(names.begin(), names.end(), word);
    if (place == names.end())
      throw UserError(fmt::format("--ideal: no cause \"{}\"{}; expected {}", word,
                                  did_you_mean(word, names), one_of(names)));
    free.add(static_cast<Cause>(place - names.begin()));
  }
  return free;
}

std::optional<Interval> grpo_interval(const IntervalQuestion& question, const Scenario& scenario,
                                      const Options& options) {
  const auto samples = options.get("samples");
  const std::uint32_t count = samples ? parse_count("--samples", *samples, 0, 4096) : 0;
  if (count == 0) return std::nullopt;
  return interval_of_run(question, scenario, count);
}

int run_grpo_scenario(const CommandLine& line, const Options& options, const Scenario& scenario,
                      const std::vector<Setting>& settings) {
  const auto interval =
      grpo_interval({.data = line.data, .scenario = options.words.front(), .settings = settings},
                    scenario, options);
  const GrpoPrediction prediction = predict_grpo(scenario);
  if (const auto output = options.get("output"); output && prediction.ran)
    write_run(*output, grpo_trace(scenario, prediction));
  fmt::print("{}", options.has("json") ? grpo_json(scenario, prediction, interval)
                                       : grpo_text(scenario, prediction, interval));
  return prediction.memory.failure ? exit_code::no : exit_code::yes;
}

}  // namespace

int run_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty()) throw UserError(fmt::format("which scenario? usage: {}", usage.call));
  const std::vector<Setting> settings = settings_of(*options);
  const bool fold = word_of(*options, "fold", "auto", {"auto", "off"}) == "auto";
  const Scenario scenario = load_scenario(line.data, options->words.front(), settings);
  if (scenario.grpo) return run_grpo_scenario(line, *options, scenario, settings);
  // Before this process replays: its workers have to find a fresh engine.
  const CauseSet free = free_causes(*options);
  if (!free.empty() && options->has("output"))
    throw UserError("--ideal: a step with free causes is no run to keep; leave out --output");
  const auto samples = options->get("samples");
  const auto interval = interval_of_run(
      {.data = line.data,
       .scenario = options->words.front(),
       .settings = settings,
       .free = free,
       .movers = samples ? most_movers : 0},
      scenario,
      samples ? std::optional(parse_count("--samples", *samples, 0, 4096)) : std::nullopt);
  Prediction prediction = predict(scenario, fold ? Folding::automatic : Folding::off, free);
  if (interval) add_interval(prediction.run, *interval);
  if (const auto output = options->get("output")) write_run(*output, prediction.run);
  fmt::print("{}", options->has("json") ? json_of(prediction, interval)
                                        : text_of(scenario, prediction, interval));
  return prediction.memory.fit() == Fit::oom ? exit_code::no : exit_code::yes;
}

}  // namespace stepsim
