// `diagnose` says what is likely wrong with a run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "analysis/studies/anchor/diagnosis.hpp"
#include "cli/outputs.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

struct Diagnosis {
  RunSigns seen;
  std::vector<Suspect> suspects;
};

// Joins what the files of a suspect's faults say.
std::string said_by(const Suspect& suspect, std::string FaultKind::*part,
                    std::string_view between) {
  return fmt::format(
      "{}", fmt::join(mapped(suspect.kinds,
                             [&](const FaultKind* kind) { return std::string_view(kind->*part); }),
                      between));
}

std::string says_of(const Suspect& suspect) {
  return suspect.kinds.empty() ? "nothing is wrong" : said_by(suspect, &FaultKind::says, ", and ");
}

RecordList suspect_list(const Diagnosis& diagnosis) {
  return list_of(diagnosis.suspects, [&](const Suspect& each) -> Records {
    const FaultyStep& step = each.likeliest;
    return {{"name", "of the fault's file, of two with + between; empty: nothing is wrong",
             said_by(each, &FaultKind::name, " + ")},
            {"says", "what may be wrong", says_of(each)},
            {"probability", "how likely", each.probability, Measure::share},
            {"step_time_s", "step", step.step_time, Measure::seconds},
            {"memory_bytes", "memory", step.memory.of(diagnosis.seen.memory_kind), Measure::bytes},
            {"busy", "GPU busy", step.busy, Measure::share},
            {"evidence", "words of the logs that speak for it", list_of(each.evidence)},
            {"test", "that tells it apart", said_by(each, &FaultKind::test, "; ")},
            {"shows", "what the test shows then", said_by(each, &FaultKind::shows, "; ")},
            {"cure", "what to do", said_by(each, &FaultKind::cure, "; ")}};
  });
}

// Lists what a profile has of each kind beside the stated step; where it does not say how many
// steps it covers, as if its kernels took as long in sum.
RecordList kernel_list(const RunSigns& seen) {
  struct Row {
    std::string_view name;
    double run = 0, stated = 0;
  };
  std::vector<Row> kinds;
  if (seen.profile) {
    const auto& [run, stated, idle, stated_idle, steps_known] = *seen.profile;
    const double step = steps_known ? 1 : stated.computing() / run.computing();
    kinds = {{"matrix products", step * run.products, stated.products},
             {"attention", step * run.attention, stated.attention},
             {"other kernels", step * run.other, stated.other},
             {"collectives", step * run.collectives, stated.collectives},
             {"copies", step * run.copies, stated.copies}};
    if (idle) kinds.push_back({"nothing runs", *idle, stated_idle});
    std::erase_if(kinds, [](const Row& each) { return each.run + each.stated == 0; });
  }
  return list_of(kinds, [](const Row& each) -> Records {
    return {{"kind", "on the device", std::string(each.name)},
            {"run_s", "in the run", Seconds{each.run}},
            {"stated_s", "predicted", Seconds{each.stated}}};
  });
}

Records diagnosis_records(const Diagnosis& diagnosis) {
  const RunSigns& seen = diagnosis.seen;
  return {{"measured_s", "step of the run", seen.step_time, Measure::seconds},
          {"measured_memory_bytes", "of a GPU in the run", seen.memory, Measure::bytes},
          {"measured_busy", "share of the time that nvidia-smi saw a kernel", seen.busy,
           Measure::share},
          {"measured_spread", "ln of long over short lines, of eight in ten", seen.spread,
           Measure::rounded},
          {"kernels", "of a profile beside the stated step", kernel_list(seen)},
          {"suspects", "the likeliest first", suspect_list(diagnosis)}};
}

std::string measured_text(const RunSigns& seen) {
  std::vector<std::string> parts;
  if (seen.step_time) parts.push_back(fmt::format("{} a step", to_text(Seconds{*seen.step_time})));
  if (seen.spread)
    parts.push_back(fmt::format("long steps {:.2f} times short ones", std::exp(*seen.spread)));
  if (seen.memory) parts.push_back(fmt::format("{} of a GPU", to_text(Bytes{*seen.memory})));
  if (seen.profile) parts.push_back("kernels of a profile");
  if (seen.busy) parts.push_back(fmt::format("GPUs busy for {:.0f} %", 100 * *seen.busy));
  return fmt::format("measured: {}\n", fmt::join(parts, ", "));
}

// Names the tests of those faults that `suspect` has and `other` has not.
std::string test_text(const Suspect& suspect, const Suspect& other) {
  std::string text;
  for (const FaultKind* kind : suspect.kinds)
    if (!holds(other.kinds, kind))
      text +=
          fmt::format("  {}\n    if it shows that {}: {}\n", kind->test, kind->shows, kind->says);
  return text;
}

std::string text_of(const Diagnosis& diagnosis) {
  constexpr std::size_t most = 5;
  constexpr double least = 0.02;
  const std::vector<Suspect>& all = diagnosis.suspects;
  Diagnosis shown{diagnosis.seen, {}};
  for (const Suspect& each : all)
    if (shown.suspects.size() < most && (shown.suspects.empty() || each.probability >= least))
      shown.suspects.push_back(each);
  std::string text = measured_text(diagnosis.seen);
  text +=
      fmt::format("likely: {} ({:.0f} %)\n\n", says_of(all.front()), 100 * all.front().probability);
  text += render(
      table_of(suspect_list(shown).items, "says; probability; step_time_s; memory_bytes; busy"));
  if (const auto& profile = diagnosis.seen.profile) {
    text += "\n" + render(table_of(kernel_list(diagnosis.seen).items, "kind; run_s; stated_s"));
    if (!profile->steps_known)
      text +=
          "the profile does not say how many steps it covers: its times are scaled to the sum of "
          "what is\npredicted for products, attention and other kernels\n";
  }
  for (const Suspect& each : shown.suspects)
    if (!each.evidence.empty())
      text += fmt::format("{}: the logs say \"{}\"\n", says_of(each),
                          fmt::join(each.evidence, "\", \""));
  if (shown.suspects.size() > 1) {
    text += "\nwhat tells the first two apart\n";
    const Suspect &first = shown.suspects[0], &second = shown.suspects[1];
    text += test_text(first, second) + test_text(second, first);
  }
  for (const FaultKind* kind : all.front().kinds) text += fmt::format("\ncure: {}\n", kind->cure);
  return text;
}

// A log that holds no progress may still be evidence.
struct ReadLogs {
  std::vector<TrainerLog> logs;
  std::string text;
};

ReadLogs read_logs(const std::vector<std::string>& paths, std::span<const FaultKind> kinds) {
  ReadLogs read;
  for (const std::string& path : paths) {
    if (auto trace = load_trace(path)) {
      read.logs.push_back(*std::move(trace));
      continue;
    }
    const std::string text = read_log_text(path);
    read.text += text;
    try {
      read.logs.push_back(read_trainer_log(text, path));
    } catch (const UserError&) {
      if (evidence_in(kinds, text).empty()) throw;
    }
  }
  return read;
}

}  // namespace

Records diagnosis_sample() {
  Diagnosis diagnosis;
  diagnosis.seen.step_time = diagnosis.seen.memory = diagnosis.seen.busy = diagnosis.seen.spread =
      0;
  diagnosis.seen.profile = {.seen = {.products = 1}, .stated = {}};
  diagnosis.suspects.emplace_back().evidence = {""};
  return diagnosis_records(diagnosis);
}

int diagnose_command(const CommandLine& line) {
  const auto options = parse("diagnose", line.words);
  if (!options) return exit_code::yes;
  const std::vector<std::string> paths = all_of(*options, "log");
  if (paths.empty())
    throw UserError("--log: is missing: a log of the run, or a line of its progress bar");
  require_one_form(*options, {"brief", "json"});
  const std::string& file = options->words.front();
  const std::vector<Setting> settings = settings_of(*options);
  const ReadLogs read = read_logs(paths, fault_kinds(line.data));
  constexpr std::uint32_t usual = 32, least = 8, most = 4096;
  const FaultQuestion question{
      .data = line.data,
      .scenario = file,
      .settings = settings,
      .samples = count_of(*options, "samples", least, most).value_or(usual)};
  FaultyRuns runs = replay_faults(question);
  Diagnosis diagnosis{signs_of(read.logs, runs, line.data), {}};
  if (!diagnosis.seen.step_time && !diagnosis.seen.memory && !diagnosis.seen.kernels)
    throw UserError("--log: no log holds a time of a step, memory of a GPU or kernels");
  replay_pairs(question, diagnosis.seen, read.text, runs);
  diagnosis.suspects = judge(runs, diagnosis.seen, read.text);
  if (options->has("json"))
    print_result(diagnosis_kind, asked_of(line.data, {file, settings}).value_or(Records{}),
                 diagnosis_records(diagnosis));
  else
    say("{}{}", text_of(diagnosis),
        options->has("brief") ? taken_in_brief(load_scenario(line.data, file, settings)) : "");
  return diagnosis.suspects.front().kinds.empty() ? exit_code::yes : exit_code::no;
}

}  // namespace stepsim
