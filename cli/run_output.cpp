#include "cli/run_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ranges>

#include "analysis/studies/predict/footprint_text.hpp"
#include "cli/beside_text.hpp"
#include "cli/engine_options.hpp"
#include "cli/next_steps_text.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "cli/taken_text.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/lists.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

// Says what a step and the run are made of, as trainers count it.
std::string batch_text(const Job& job, const Prediction& p) {
  if (!p.length) return "";
  const RunLength& length = *p.length;
  return fmt::format(
      "batches      {:.10g} {} to a step, {:.10g} steps, {:.10g} micro-batches on each rank{}\n"
      "             {:.3g} micro-batches/s, {:.3g} steps/s\n",
      length.effective_batch, job.has_pairs() ? "pairs" : "sequences", length.optimizer_steps,
      length.iterations, job.epochs == 1 ? "" : fmt::format(", {:.4g} epochs", job.epochs),
      p.iterations_per_second, 1 / p.step_time.value);
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

std::string evaluation_times(const Evaluating& evaluation) {
  if (evaluation.every >= 1) return fmt::format("every {:.10g} steps", evaluation.every);
  if (evaluation.every > 0) return fmt::format("every {:.3g} of an epoch", evaluation.every);
  return "behind each epoch";
}

std::string evaluation_text(const Job& job, const EvaluationCost& cost, Seconds wall) {
  std::string text = evaluation_times(job.evaluation) + ", ";
  if (cost.passes == 0)
    return text + fmt::format(
                      "{} for a micro-batch of {}: how many rows are held back is not "
                      "said, and they are left out of the whole job",
                      to_text(cost.pass), job.evaluation.micro_batch);
  text += to_text(cost.time());
  if (wall.value > 0)
    text += fmt::format(" each, {:.0f} times, {} of the whole job", cost.count,
                        share_of(cost.time() * cost.count, wall));
  return text;
}

// Says what is written and read between steps, and what of the run that takes.
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
    if (p.saving->behind.value > 0)
      text += fmt::format(", and {} more until it is written", to_text(p.saving->behind));
    if (p.wall.value > 0)
      text += fmt::format(", {:.0f} times, {} of the whole job", p.saving->count,
                          share_of(p.saving->time * p.saving->count, p.wall));
    text += '\n';
    if (const double room = p.memory.disk_capacity - p.memory.disk; p.memory.disk_capacity > 0)
      text += drives_text(files.on_a_node(scenario.cluster.gpus_per_node()), room);
  }
  if (p.evaluation) text += labelled("evaluation", evaluation_text(job, *p.evaluation, p.wall));
  if (p.goodput) text += labelled("goodput", goodput_text(*p.goodput));
  if (p.resuming)
    text += fmt::format(
        "resuming     after {:.10g} steps: reads {}, makes {:.0f} micro-batches again, {}\n",
        job.resume.after, to_text(Bytes{p.resuming->bytes}), p.resuming->skipped,
        to_text(p.resuming->time));
  return text;
}

std::string coloured_verdict(const Footprint& memory) {
  return coloured(verdict_text(memory), memory.fit() == Fit::oom ? Colour::bad : Colour::good);
}

std::string place_lines(const Scenario& scenario) {
  std::string text = place_text(scenario) + "\n";
  if (const std::string groups = to_text(mesh_of(scenario.strategy, scenario.cluster));
      !groups.empty())
    text += fmt::format("{} ranks: {}\n", scenario.cluster.ranks(), groups);
  return text + "\n";
}

std::string loss_text(const std::optional<LossCost>& loss) {
  if (!loss) return "";
  std::string text =
      fmt::format("lost         {}, {} into a step of {}, which ends there;\n             ",
                  loss->what, to_text(loss->at), to_text(loss->step));
  if (!loss->saved) return text + "no checkpoint is saved (job.save.every): the job begins anew\n";
  return text + fmt::format(
                    "from the last checkpoint: {} to read it, and {:.10g} steps again in the "
                    "mean, {}\n",
                    to_text(loss->resume), loss->steps_again,
                    to_text(loss->step * loss->steps_again));
}

std::string rates_text(const Prediction& p, const std::optional<Interval>& interval) {
  std::string text;
  if (p.memory.fit() == Fit::oom)
    text += fmt::format("verdict      {}: it cannot run; times are as if it could\n",
                        coloured("does not fit into memory", Colour::bad));
  text += fmt::format("step time    {}", to_text(p.step_time));
  if (interval)
    text += fmt::format("  (likely {} to {}, by {} draws of the constants)",
                        to_text(Seconds{interval->step_time.low}),
                        to_text(Seconds{interval->step_time.high}), interval->samples);
  else
    text += "  (--samples 16 adds an interval)";
  text += '\n';
  text += fmt::format("throughput   {:.0f} tok/s/GPU{}", p.tokens_per_second_per_gpu,
                      p.loss ? ", of a step without the loss" : "");
  if (interval)
    text += fmt::format("  (likely {:.0f} to {:.0f})", interval->throughput.low,
                        interval->throughput.high);
  text += '\n';
  text += fmt::format(
      "utilisation  {:.1f} % of the bf16 peak ({:.1f} % with attention over whole rows)\n"
      "             {} for {:.0f} FLOP a token and matrix parameter, {} for causal attention;\n"
      "             none for recomputation and padding\n",
      100 * p.utilisation, 100 * p.utilisation_in_rows, to_text(Flops{p.flops.matrices}),
      p.flops.per_parameter, to_text(Flops{p.flops.attention}));
  if (p.wall.value > 0)
    text += fmt::format(
        "{:<13}{}{}\n", p.resuming ? "rest of job" : "whole job", to_text(p.wall),
        interval ? fmt::format("  (likely {} to {})", to_text(Seconds{interval->wall.low}),
                               to_text(Seconds{interval->wall.high}))
                 : "");
  return text;
}

std::string memory_text(const Scenario& scenario, const Footprint& memory) {
  std::string text =
      fmt::format("\nmemory       {} of {} usable: {}\n", to_text(Bytes{memory.needed()}),
                  to_text(Bytes{memory.capacity}), coloured_verdict(memory));
  text += fmt::format("\n{}\nthe peak is in {}, at {}{}\n",
                      classes_table(memory, scenario.cluster.gpu.title), memory.device.peak.phase,
                      memory.device.peak.name, stage_text(memory));
  return text + shown_text(memory, device_tool(scenario)) + failure_text(memory) +
         host_text(memory);
}

constexpr std::size_t most_changes = 100;

std::string changes_text(const RunExtras& extras, std::size_t most) {
  return (extras.faster ? faster_text(*extras.faster, most) : "") +
         (extras.fitting ? fitting_text(*extras.fitting, most) : "");
}

std::string seconds_text(Seconds time) {
  return to_text(time);
}

std::string movers_text(const Interval& interval) {
  return movers_table(interval.movers, "the step time", "step time", seconds_text) +
         movers_table(interval.wall_movers, "the number of steps", "whole job", seconds_text);
}

std::string range_text(const NamedConstant& constant) {
  if (constant.words.empty())
    return fmt::format("{} to {}", value_text(constant, constant.low),
                       value_text(constant, constant.high));
  return fmt::format("{}", fmt::join(constant.words, " or "));
}

// Says what the scenario itself does not know.
std::string unknown_text(const Scenario& scenario) {
  constexpr std::string_view own = "scenario.";
  TextTable table{{"not known of this run", " taken", "may be"}};
  for (const NamedConstant& constant : scenario.constants)
    if (constant.name.starts_with(own) && constant.low < constant.high)
      table.rows.push_back({constant.name.substr(own.size()), value_text(constant, constant.value),
                            range_text(constant)});
  return table.rows.empty() ? "" : "\n" + render(table);
}

// Lists where the time goes, cause by cause.
RecordList breakdown_list(const Prediction& p) {
  const auto row = [&](std::string_view cause, Seconds exposed, Seconds hidden) -> Records {
    return {{"cause", "where the time goes", cause},
            {"exposed_s", "exposed", exposed},
            {"share", "share", exposed / p.step_time, Measure::share},
            {"hidden_s", "hidden", hidden}};
  };
  RecordList list = list_of(p.breakdown.rows, [&](const BreakdownRow& each) {
    return row(to_text(each.cause), each.exposed, each.hidden);
  });
  list.items.emplace_back("", "", row("idle", p.breakdown.idle, {}));
  return list;
}

std::string breakdown_text(const Prediction& p) {
  const bool stages = p.memory.stage.count > 0;
  return "\n" + render(table_of(breakdown_list(p).items,
                                stages ? "cause=mean of all stages; exposed_s; share; hidden_s"
                                       : "cause=where the time goes; exposed_s; share; hidden_s"));
}

// ---- as much as fits a screen

// Writes the causes that take a hundredth of the step, at most so many, and all others together.
std::string largest_causes(const Prediction& p, std::size_t most) {
  std::vector<BreakdownRow> rows = p.breakdown.rows;
  std::ranges::stable_sort(rows, std::greater{},
                           [](const BreakdownRow& row) { return row.exposed.value; });
  TextTable table{{p.memory.stage.count > 0 ? "mean of all stages" : "where the time goes",
                   " exposed", " share", " hidden"}};
  const auto add = [&](std::string_view name, Seconds exposed, Seconds hidden) {
    table.rows.push_back(
        {std::string(name), to_text(exposed), percent(exposed / p.step_time), to_text(hidden)});
  };
  Seconds exposed = p.breakdown.idle, hidden{};
  for (const BreakdownRow& row : rows)
    if (table.rows.size() < most && row.exposed / p.step_time >= 0.01) {
      add(to_text(row.cause), row.exposed, row.hidden);
    } else {
      exposed = exposed + row.exposed;
      hidden = hidden + row.hidden;
    }
  if (exposed.value + hidden.value > 0) add("all else", exposed, hidden);
  return "\n" + render(table);
}

// Writes the figures beside step time and memory, one behind the other.
std::string further_figures(const Scenario& scenario, const Prediction& p,
                            const std::optional<Interval>& interval) {
  std::vector<std::string> parts;
  parts.push_back(
      fmt::format("{:.0f} tok/s/GPU{}, {:.1f} % of the bf16 peak", p.tokens_per_second_per_gpu,
                  interval ? fmt::format(" (likely {:.0f} to {:.0f})", interval->throughput.low,
                                         interval->throughput.high)
                           : "",
                  100 * p.utilisation));
  if (p.wall.value > 0)
    parts.push_back(fmt::format(
        "{} {}{}", p.resuming ? "rest of job" : "whole job", to_text(p.wall),
        interval ? fmt::format(" (likely {} to {})", to_text(Seconds{interval->wall.low}),
                               to_text(Seconds{interval->wall.high}))
                 : ""));
  if (p.length)
    parts.push_back(fmt::format("{:.10g} {} a step, {:.10g} steps", p.length->effective_batch,
                                scenario.job.has_pairs() ? "pairs" : "sequences",
                                p.length->optimizer_steps));
  if (p.energy) parts.push_back(to_text(Joules{p.energy->total()}) + " a step");
  if (p.saving)
    parts.push_back(fmt::format("saving waits {} every {:.10g} steps", to_text(p.saving->time),
                                scenario.job.save.every));
  if (p.evaluation && p.evaluation->passes > 0)
    parts.push_back(fmt::format("evaluation takes {} {}", to_text(p.evaluation->time()),
                                evaluation_times(scenario.job.evaluation)));
  if (p.goodput) parts.push_back(goodput_in_short(*p.goodput));
  if (p.resuming) parts.push_back("resuming takes " + to_text(p.resuming->time));
  return labelled("also", fmt::format("{}", fmt::join(parts, "; ")));
}

std::string memory_paragraph(const Scenario& scenario, const Footprint& f) {
  constexpr std::size_t most_classes = 5;
  std::vector<std::pair<std::string, double>> classes(f.device.peak.classes.begin(),
                                                      f.device.peak.classes.end());
  classes.emplace_back("allocator slack", f.slack);
  std::ranges::stable_sort(classes, std::greater{}, [](const auto& each) { return each.second; });
  std::vector<std::string> parts;
  double rest = f.library;
  for (const auto& [name, bytes] : classes)
    if (parts.size() < most_classes)
      parts.push_back(fmt::format("{} {}", spoken(name), to_text(Bytes{bytes})));
    else
      rest += bytes;
  std::string text =
      fmt::format("at the peak in {}, at {}{}: {}, all else {}", f.device.peak.phase,
                  f.device.peak.name, stage_text(f), fmt::join(parts, ", "), to_text(Bytes{rest}));
  if (f.margin.value >= 0)
    text += fmt::format("; {} shows {}", device_tool(scenario), to_text(Bytes{f.shown()}));
  if (f.pinned + f.pageable > 0 || !f.host_fits())
    text += fmt::format("; host memory of a node {} of {}", to_text(Bytes{f.host.peak.bytes}),
                        to_text(Bytes{f.host_capacity}));
  if (f.disk > 0) text += fmt::format("; its drives {}", to_text(Bytes{f.disk}));
  text = "\n" + labelled("memory", text);
  if (const std::string failed = failure_text(f); !failed.empty())
    text += labelled("", failed.substr(0, failed.size() - 1));
  return text;
}

// Writes so many notes, each as long as a line or two, and how many there are besides.
std::string few_notes(const Scenario& scenario, const Prediction& p, std::size_t most) {
  constexpr std::size_t longest = 160;
  const std::string missing(key_fate_titles[static_cast<std::size_t>(KeyFate::unmodelled)]);
  std::vector<std::string> notes = scenario.notes;
  std::erase_if(notes, [&](const std::string& note) { return note.ends_with(missing); });
  std::string text;
  for (const std::string& note : notes | std::views::take(most)) {
    std::string line = on_one_line(note);
    if (line.size() > longest) line = line.substr(0, line.rfind(' ', longest)) + " ...";
    text += labelled("note", line);
  }
  const std::size_t more = notes.size() - std::min(notes.size(), most);
  text += labelled(
      "", fmt::format("{}{} constants are guesses; --full prints everything",
                      more > 0 ? fmt::format("{} more note{}; ", more, more == 1 ? "" : "s") : "",
                      p.guesses.size()));
  return text;
}

// Returns the records of the whole run: batches, saving and resuming.
Records length_records(const Prediction& p) {
  const auto batches = [&](const RunLength& length) -> Records {
    return {{"effective_batch", "sequences or pairs to a step", length.effective_batch},
            {"optimizer_steps", "of the run", length.optimizer_steps},
            {"iterations", "micro-batches of each rank", length.iterations},
            {"epochs", "over the data", length.epochs},
            {"iterations_per_second", "micro-batches", p.iterations_per_second}};
  };
  const auto saving = [&](const SavingCost& cost) -> Records {
    const Checkpoint& files = cost.files;
    const auto share =
        p.wall.value > 0 ? std::optional(cost.time * cost.count / p.wall) : std::nullopt;
    return {{"bytes", "of one checkpoint", Bytes{files.bytes()}},
            {"weight_bytes", "of it weights", Bytes{files.writers * files.weights}},
            {"state_bytes_per_rank", "of it states, each rank", Bytes{files.states}},
            {"files", "in so many files", files.files},
            {"time_s", "training waits for one", cost.time},
            {"behind_s", "beyond that, until it is written", cost.behind},
            {"count", "in the whole run", cost.count},
            {"share_of_wall", "of the whole job", share, Measure::share}};
  };
  const auto evaluation = [](const EvaluationCost& cost) -> Records {
    return {{"pass_s", "over one micro-batch", cost.pass},
            {"passes", "of one evaluation; 0: its rows are not known", cost.passes},
            {"time_s", "of one evaluation", cost.time()},
            {"count", "in the whole run", cost.count}};
  };
  const auto resuming = [](const ResumingCost& cost) -> Records {
    return {{"bytes", "read by all ranks", Bytes{cost.bytes}},
            {"skipped_micro_batches", "made again by each rank", cost.skipped},
            {"time_s", "until the first step begins", cost.time}};
  };
  return {parts_if("batches", "what a step and the run are made of", p.length, batches),
          parts_if("save", "what saving costs", p.saving, saving),
          parts_if("evaluation", "passes over rows held back", p.evaluation, evaluation),
          parts_if("resume", "what resuming costs", p.resuming, resuming),
          parts_if("failures", "what is left of the time when parts of the machine fail", p.goodput,
                   goodput_records)};
}

Records interval_records(const Prediction& p, const std::optional<Interval>& interval) {
  const auto range = [&](Range Interval::*member) {
    return interval ? std::optional((*interval).*member) : std::nullopt;
  };
  std::optional<Range> wall;
  if (interval && p.wall.value > 0) wall = {interval->wall.low / 3600, interval->wall.high / 3600};
  const Interval drawn = interval.value_or(Interval{});
  return {{"interval_s", "8 of 10 draws: step time", range(&Interval::step_time), Measure::seconds},
          {"tokens_per_second_per_gpu_interval", "8 of 10 draws: throughput",
           range(&Interval::throughput)},
          {"peak_memory_interval_bytes", "8 of 10 draws: memory", range(&Interval::memory),
           Measure::bytes},
          {"wall_interval_h", "8 of 10 draws: the whole job", wall, Measure::hours},
          {"samples", "draws of the constants that could run", drawn.samples},
          {"drawn_s", "step time of each", list_of(drawn.step_times, std::identity())},
          {"moved_most_by", "constants that move the step time most",
           mover_list(drawn.movers, "at_low_s", "at_high_s")},
          {"wall_moved_most_by", "constants that move the number of steps most",
           mover_list(drawn.wall_movers, "at_low_s", "at_high_s")}};
}

// This is what the framework prints of memory itself.
Record log_record(const Stack::MemoryLog& log, double allocated) {
  return {"memory_log", "what the framework's own log says",
          Records{{"counts", "allocated, reserved, device or unsaid",
                   log.kind == MemoryKind::unsaid
                       ? "unsaid"
                       : memory_kind_names[static_cast<std::size_t>(log.kind)]},
                  {"binary", "its GB are 2^30 bytes", log.binary},
                  {"allocated_bytes",
                   "of tensors, in the program's order; of a pipeline's first stage where the log "
                   "is that one's",
                   Bytes{allocated}}}};
}

}  // namespace

std::string place_text(const Scenario& scenario) {
  const bool part = holds(scenario.said, "cluster.gpus_per_node", &SaidKey::path);
  return fmt::format(
      "{} on {} x {}{}, {}", scenario.model.name, scenario.cluster.nodes,
      scenario.cluster.node.name,
      part ? fmt::format(" ({} GPUs of each)", scenario.cluster.gpus_per_node()) : "",
      scenario.stack.title);
}

JobTime job_time_of(const Scenario& scenario, const Prediction& p) {
  const double gpus = scenario.cluster.ranks();
  JobTime time{p.step_time, p.wall, gpus, gpus * p.tokens_per_second_per_gpu};
  if (p.length) time.steps = p.length->optimizer_steps - scenario.job.resume.after;
  if (p.energy)
    time.kwh = (p.wall.value > 0 ? p.job_energy.value : p.energy->total()) / joules_per_kwh;
  return time;
}

Records run_records(const Scenario& scenario, const Prediction& p, const RunExtras& extras) {
  const std::optional<Interval>& interval = extras.interval;
  const auto wall = p.wall.value > 0 ? std::optional(p.wall.value / 3600) : std::nullopt;
  return joined(
      {{{"step_time_s", "one optimizer step", p.step_time},
        {"tokens_per_second_per_gpu", "padding left out", p.tokens_per_second_per_gpu},
        {"model_flops_utilisation", "of the bf16 peak, recomputation not counted", p.utilisation,
         Measure::share},
        {"model_flops_utilisation_attention_in_rows", "the same, attention over whole rows",
         p.utilisation_in_rows, Measure::share},
        {"model_flops_matrices", "of a GPU and step", p.flops.matrices, Measure::flops},
        {"model_flops_attention", "of a GPU and step, causal", p.flops.attention, Measure::flops}},
       interval_records(p, interval),
       {{"wall_h", "the whole job, or what is left of it", wall, Measure::hours}},
       length_records(p),
       footprint_records(p.memory),
       {log_record(scenario.stack.memory_log, extras.allocated),
        {"gpus", "that train", scenario.cluster.ranks()},
        {"ops", "operations of the step", p.operations},
        {"breakdown", "where the time goes: every instant of a rank has one cause",
         breakdown_list(p)},
        parts_if("lost", "a GPU or link is, during the step, which ends there", p.loss,
                 [](const LossCost& loss) -> Records {
                   return {{"what", "is lost", loss.what},
                           {"at_s", "of the step", loss.at},
                           {"step_time_s", "of a step without it", loss.step},
                           {"resume_s", "until the last checkpoint is read",
                            loss.saved ? std::optional(loss.resume) : std::nullopt},
                           {"steps_again", "since that, in the mean",
                            loss.saved ? std::optional(loss.steps_again) : std::nullopt}};
                 }),
        played_record(p.played_by),
        energy_record(p, interval),
        cost_record(extras.rates, job_time_of(scenario, p)),
        faster_record(extras.faster),
        beside_record(extras.log, p, interval),
        fitting_record(extras.fitting),
        others_record(extras.others)}});
}

double logged_bytes(const Scenario& scenario) {
  const Footprint ordered = footprint(scenario);
  const bool first = scenario.stack.memory_log.first_stage && ordered.first_stage > 0;
  return first ? ordered.first_stage : ordered.device.peak.bytes;
}

Records run_sample() {
  Prediction p;
  p.length.emplace();
  p.saving.emplace();
  p.evaluation.emplace();
  p.resuming.emplace();
  p.loss =
      LossCost{.what = "", .at = {}, .saved = true, .resume = {}, .steps_again = 0, .step = {}};
  p.wall = p.step_time = {1};
  p.energy.emplace();
  p.job_energy = {1};
  p.memory = footprint_sample();
  RunExtras extras;
  Interval& interval = extras.interval.emplace();
  interval.movers = interval.wall_movers = {Mover{}};
  interval.step_times = {0};
  extras.rates = {1.0, 1.0};
  extras.log.emplace();
  extras.faster = FasterSteps{{NextStep{}}, 0, 0, true};
  extras.fitting = FittingSteps{{NextStep{}}, {NextStep{}}, {NextStep{}}};
  extras.others.emplace_back();
  return run_records({}, p, extras);
}

std::string likely_text(const std::optional<Interval>& interval) {
  if (!interval) return "";
  return fmt::format(" (likely {} to {})", to_text(Seconds{interval->step_time.low}),
                     to_text(Seconds{interval->step_time.high}));
}

std::string head_text(const Scenario& scenario, const Prediction& p, const RunExtras& extras) {
  return title_line(scenario) + loss_text(p.loss) +
         wrap(answer_sentence(scenario, p.memory,
                              to_text(p.step_time) + likely_text(extras.interval), extras.others),
              std::min(line_width(), answer_width), 0) +
         "\n" + others_text(p.memory, extras.others);
}

std::string screen_text(const Scenario& scenario, const Prediction& p, const RunExtras& extras) {
  const std::string head = head_text(scenario, p, extras);
  const std::string fixed = first_change(extras.faster, extras.fitting) + "\n" +
                            taken_paragraph(scenario) + not_modelled_paragraph(scenario) +
                            further_figures(scenario, p, extras.interval) +
                            beside_text(extras.log, p, extras.interval) +
                            cost_text(extras.rates, job_time_of(scenario, p));
  const std::string energy = extras.energy ? energy_table(p) : "";
  const std::string movers = extras.interval ? movers_text(*extras.interval) : "";
  return on_one_screen(
      [&](std::size_t most) {
        return fixed + open_values_table(extras.open, most) + largest_causes(p, most) + energy +
               memory_paragraph(scenario, p.memory) + movers +
               changes_text(extras, extras.asked ? most_changes : 3) +
               few_notes(scenario, p, most / 3);
      },
      static_cast<std::size_t>(std::ranges::count(head, '\n')));
}

std::string whole_text(const Scenario& scenario, const Prediction& p, const RunExtras& extras) {
  const std::optional<Interval>& interval = extras.interval;
  std::string text = first_change(extras.faster, extras.fitting) + "\n" +
                     taken_paragraph(scenario) + not_modelled_paragraph(scenario) + "\n" +
                     assumptions_text(scenario.assumptions) + place_lines(scenario) +
                     rates_text(p, interval);
  text += beside_text(extras.log, p, interval);
  if (!extras.rates.power) text += energy_text(p, interval);
  text += cost_text(extras.rates, job_time_of(scenario, p));
  text += batch_text(scenario.job, p) + saving_text(scenario, p);
  text +=
      breakdown_text(p) + (extras.energy ? energy_table(p) : "") + memory_text(scenario, p.memory);
  if (interval) {
    text +=
        fmt::format("over the draws {} to {} are needed\n", to_text(Bytes{interval->memory.low}),
                    to_text(Bytes{interval->memory.high}));
    text += movers_text(*interval);
  }
  text += unknown_text(scenario) + notes_text(scenario);
  if (!p.guesses.empty())
    text += fmt::format("\nnote: {} of the constants behind this are guesses\n", p.guesses.size());
  return text + played_text(p.played_by) + changes_text(extras, most_changes);
}

std::string brief_text(const Scenario& scenario, const Prediction& p, const RunExtras& extras) {
  constexpr std::size_t most_in_brief = 5;
  const std::string job = fmt::format(
      "{}{}", p.wall.value > 0 ? fmt::format(", {} the whole job", to_text(p.wall)) : "",
      p.goodput ? ", " + goodput_in_short(*p.goodput) : "");
  std::vector<std::string> others;
  others.reserve(extras.others.size());
  for (const OtherVerdict& each : extras.others)
    others.push_back(fmt::format("as {}, which no file says; {} with {} ({})", each.taken,
                                 to_text(Bytes{each.needed}), each.other,
                                 each.fit == Fit::tight ? "fits, but tightly" : "fits"));
  return fmt::format("{} a step{}, {:.0f} tok/s/GPU{}; {} of {} usable: {}{}{}\n{}",
                     to_text(p.step_time), likely_text(extras.interval),
                     p.tokens_per_second_per_gpu, job, to_text(Bytes{p.memory.needed()}),
                     to_text(Bytes{p.memory.capacity}), coloured_verdict(p.memory),
                     others.empty() ? "" : ", ", fmt::join(others, "; "),
                     taken_in_brief(scenario)) +
         changes_text(extras, most_in_brief);
}

}  // namespace stepsim
