// `anchor` lets predictions learn from a measured run.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "analysis/studies/anchor/anchoring.hpp"
#include "cli/command.hpp"
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

constexpr std::array anchor_option_specs = with_source_options(std::array{
    OptionSpec{"log", "LOG",
               "what the run said of itself: a line of its progress bar, trainer_state.json, a "
               "trainer's log, W&B's history (CSV, JSON), nvidia-smi's output; - reads standard "
               "input; repeats",
               0, true},
    OptionSpec{"output", "FILE",
               "write the anchor there, NAME.anchor.yaml (default: it is shown, and not kept)",
               'o'},
    OptionSpec{"samples", "N", "draws of the constants (default 64)"},
    OptionSpec{"set", "KEY=VALUE", "instead of what the file says; repeats", 0, true},
    OptionSpec{"brief", "", "with what was taken, in a few lines"},
    OptionSpec{"json", "", "for machines"}});
constexpr Usage anchor_usage{
    "stepsim anchor FILE --log LOG... [-o NAME.anchor.yaml] [options]",
    "Holds draws of all constants, each within its range, against a run that was measured, and "
    "keeps how much each draw counts since. Other commands take them with --anchor "
    "NAME.anchor.yaml, "
    "or by themselves where the file is in ~/.config/stepsim/anchors: for the same GPU, node, "
    "network and stack.",
    anchor_option_specs,
    "  stepsim anchor lora8b.yml --log train.log -o h100.anchor.yaml\n"
    "  echo '12/100 [01:40<12:13, 8.33s/it]' | stepsim anchor lora8b.yml --log -\n"
    "  nvidia-smi >smi.txt; stepsim anchor lora8b.yml --log trainer_state.json --log smi.txt\n"
    "  stepsim run other.yml --anchor h100.anchor.yaml\n",
    1};

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
    text +=
        "\n" + render(table_of(moved_list(anchor).items, {{"name"}, {"from"}, {"to"}, {"place"}}));
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
  const auto options = parse(anchor_usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty())
    throw UserError(fmt::format("which scenario? usage: {}", anchor_usage.call));
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
