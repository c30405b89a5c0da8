// `anchor` lets predictions learn from a measured run.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>

#include "analysis/studies/anchor/anchoring.hpp"
#include "cli/options.hpp"
#include "cli/outputs.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

RecordList moved_list(const Anchor& anchor) {
  return list_of(anchor.moved, [](const MovedConstant& each) -> Records {
    return {{"name", "constant that moved", each.name},
            {"from", "catalogue", each.from},
            {"to", "anchored", each.to},
            {"place", "place in its range", each.place, Measure::rounded}};
  });
}

Records anchor_records(const AnchoredRun& run) {
  const Anchor& anchor = run.anchor;
  return {
      {"title", "of the run", anchor.title},
      {"said", "in words", anchor.said},
      {"from", "what the logs say", list_of(anchor.from)},
      {"measured_s", "step of the run", run.step_time, Measure::seconds},
      {"measured_memory_bytes", "of a GPU in the run", run.memory, Measure::bytes},
      {"stated_s", "step as the catalogue has it", run.stated},
      {"anchored_s", "the same step, anchored", run.anchored},
      {"interval_s", "8 of 10 draws before", run.before},
      {"anchored_interval_s", "and after", run.after},
      {"draws", "of the constants", anchor.draws ? anchor.draws->of : 0},
      {"effective_draws", "so many of one weight say as much", anchor.effective, Measure::rounded},
      {"moved", "constants that moved by more than luck, the one that moves the step most first",
       moved_list(anchor)}};
}

std::string step_text(double seconds) {
  return to_text(Seconds{seconds});
}

std::string text_of(const AnchoredRun& run) {
  const Anchor& anchor = run.anchor;
  std::string text = fmt::format("{}: {}\n", anchor.title, anchor.said);
  for (const std::string& each : anchor.from) text += fmt::format("  {}\n", each);
  text += fmt::format("\nstep time    {} in the catalogue (likely {} to {})\n",
                      step_text(run.stated.value), step_text(run.before.low),
                      step_text(run.before.high));
  if (run.step_time) text += fmt::format("             {} in the run\n", step_text(*run.step_time));
  text += fmt::format("             {} anchored (likely {} to {})\n", step_text(run.anchored.value),
                      step_text(run.after.low), step_text(run.after.high));
  constexpr double far = 0.1;  // as a logarithm, from the anchored step
  if (run.step_time && std::abs(std::log(*run.step_time / run.anchored.value)) > far)
    text += fmt::format(
        "             Part of the gap is taken to be this run's own: a second log (--anchor adds "
        "it) tells\n             how much other runs share, `stepsim diagnose` what may be wrong "
        "with this one.\n");
  if (run.memory)
    text += fmt::format("memory       {} of a GPU in the run, {} in the catalogue\n",
                        to_text(Bytes{*run.memory}), to_text(Bytes{run.stated_memory}));
  text += fmt::format("draws        {} of the constants, which count as {:.0f} since\n",
                      anchor.draws->of, anchor.effective);
  if (anchor.effective < 5)
    text +=
        "             few draws are near this run: what it says of single constants is weak; more "
        "with --samples\n";
  if (!anchor.moved.empty())
    text += "\n" + render(table_of(moved_list(anchor).items, "name; from; to; place"));
  return text;
}

std::string name_of(const std::string& path) {
  return path == "-" ? std::string("standard input")
                     : std::filesystem::path(path).filename().string();
}

// Says when the log was written, too: what a machine does changes.
std::string dated(const std::string& path) {
  struct stat file {};
  if (path == "-" || stat(path.c_str(), &file) != 0) return name_of(path);
  return fmt::format("{} of {:%Y-%m-%d}", name_of(path), fmt::gmtime(file.st_mtime));
}

std::string title_of(const std::string& file, const std::vector<std::string>& logs) {
  return fmt::format("{} beside {}", name_of(file), fmt::join(mapped(logs, name_of), ", "));
}

}  // namespace

Records anchor_sample() {
  AnchoredRun run;
  run.step_time = run.memory = 0;
  run.anchor.from = {""};
  run.anchor.moved.emplace_back();
  return anchor_records(run);
}

int anchor_command(const CommandLine& line) {
  const auto options = parse("anchor", line.words);
  if (!options) return exit_code::yes;
  require_one_form(*options, {"brief", "json"});
  const std::string& file = options->words.front();
  const std::vector<std::string> logs = all_of(*options, "log");
  if (logs.empty())
    throw UserError("--log: is missing: a log of the run, or a line of its progress bar");
  const auto output = options->get("output");
  if (output && !output->ends_with(".anchor.yaml"))
    throw UserError(
        fmt::format("--output: expected a name that ends in .anchor.yaml, found \"{}\"", *output));
  std::vector<Setting> settings = settings_of(*options);
  settings.emplace_back(no_anchor_setting, "true");
  if (output) {
    std::vector<std::string> inputs =
        files_of(line, file, load_scenario(line.data, file, settings));
    append(inputs, logs);
    require_no_input(*output, inputs);
  }
  const std::vector<TrainerLog> read = mapped(logs, load_trainer_log);
  constexpr std::uint32_t usual = 64, least = 8, most = 4096;
  const AnchoredRun run =
      anchor_run({.data = line.data,
                  .scenario = file,
                  .settings = settings,
                  .logs = read,
                  .names = mapped(logs, dated),
                  .title = title_of(file, logs),
                  .samples = count_of(*options, "samples", least, most).value_or(usual),
                  .before = named_anchor(line.data, settings)});
  if (output) write_file(*output, anchor_text(run.anchor));
  if (options->has("json")) {
    const auto asked = asked_of(line.data, {file, settings});
    print_result(anchor_kind, asked.value_or(Records{}), anchor_records(run));
    return exit_code::yes;
  }
  say("{}{}", text_of(run),
      options->has("brief") ? taken_in_brief(load_scenario(line.data, file, settings)) : "");
  if (output)
    say("\n{}: take it with --anchor {}, or put it into ~/.config/stepsim/anchors\n", *output,
        *output);
  return exit_code::yes;
}

}  // namespace stepsim
