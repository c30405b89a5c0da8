// `calibrate`: the free constants of a stack, fitted to its measured rows.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/studies/fidelity/calibration_files.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs{
    OptionSpec{"samples", "N",
               "draws of the other constants for what `unexplained` ranges over (16); 0: leave it"},
    OptionSpec{"write", "", "put the result into the stack's data file"},
};
constexpr Usage usage{
    "stepsim calibrate PLAN [options]",
    "Fits the constants that workloads/calibration/PLAN.yaml sets free to the measured rows it "
    "names, by robust least squares within its bounds, and predicts each family of rows once more "
    "without it in the fit. Then it finds how far steps stray beyond the ranges of all constants, "
    "so that intervals of 80 % hold eight of ten rows. The same input gives the same bytes.",
    option_specs, "  stepsim calibrate llm-foundry\n  stepsim calibrate internevo --write\n", 1};

std::string text_of(const Calibration& result) {
  TextTable constants{{"constant", "before", "fitted", "low", "high"},
                      {Align::left, Align::right, Align::right, Align::right, Align::right},
                      {}};
  for (const FittedConstant& c : result.constants)
    constants.rows.push_back({c.name, to_text(c.before, c.dimension), to_text(c.value, c.dimension),
                              to_text(c.low, c.dimension), to_text(c.high, c.dimension)});
  if (result.samples > 0)
    constants.rows.push_back({"unexplained", "", "1", fmt::format("{:.2f}", result.unexplained.low),
                              fmt::format("{:.2f}", result.unexplained.high)});
  TextTable families{{"family", "rows", "median before", "median", "90 %", "signed mean",
                      "left out", "inside 80 %"},
                     {Align::left, Align::right, Align::right, Align::right, Align::right,
                      Align::right, Align::right, Align::right},
                     {}};
  for (std::size_t i = 0; i < result.after.size(); ++i) {
    const RowFamily& now = result.after[i];
    const bool crossed = i < result.held_out.size();
    families.rows.push_back({now.name, fmt::format("{}", now.rows),
                             percent(result.before[i].median), percent(now.median),
                             percent(now.p90), fmt::format("{:+.1f} %", 100 * now.signed_mean),
                             crossed ? percent(result.held_out[i].held_out) : "-",
                             fmt::format("{} of {}", now.inside, now.intervals)});
  }
  return render(constants) + "\n" + render(families);
}

}  // namespace

int calibrate_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  const std::vector<std::string> plans = names_on(line.data, {"workloads/calibration", "plan"});
  if (options->words.empty())
    throw UserError(fmt::format("which plan: {}? usage: {}", one_of(plans), usage.call));
  const std::string& wanted = options->words.front();
  if (std::find(plans.begin(), plans.end(), wanted) == plans.end())
    throw UserError(fmt::format("no plan \"{}\"{}; there are {}", wanted,
                                did_you_mean(wanted, plans), one_of(plans)));
  const auto samples = count_of(*options, "samples", 0, 4096).value_or(16);
  const CalibrationPlan plan = read_calibration_plan(line.data, wanted);
  const Calibration result = calibrate(line.data, plan, samples);
  if (options->has("write"))
    for (const std::string& stack : plan.stacks)
      write_file(file_of(line.data, stack_shelf, stack),
                 fitted_stack_file(line.data, stack, plan, result));
  fmt::print("{}", text_of(result));
  return exit_code::yes;
}

}  // namespace stepsim
