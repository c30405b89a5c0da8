// `calibrate`: the free constants of a stack, fitted to its measured rows.
#include <fmt/format.h>

#include <array>

#include "analysis/studies/calibration.hpp"
#include "analysis/table.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "scenarios/scenario.hpp"
#include "sim/error.hpp"
#include "sim/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs{
    OptionSpec{"write", "", "put the result into the stack's data file"},
};
constexpr Usage usage{
    "stepsim calibrate STACK [--write]",
    "Fits the constants that workloads/calibration/STACK.yaml sets free to the measured rows it "
    "names, by robust least squares within its bounds, and predicts each family of rows once more "
    "without it in the fit. The same input gives the same bytes.",
    option_specs, "  stepsim calibrate llm-foundry\n  stepsim calibrate internevo --write\n", 1};

std::string text_of(const Calibration& result) {
  TextTable constants{{"constant", "before", "fitted", "low", "high"},
                      {Align::left, Align::right, Align::right, Align::right, Align::right},
                      {}};
  for (const FittedConstant& c : result.constants)
    constants.rows.push_back({c.name, to_text(c.before, c.dimension), to_text(c.value, c.dimension),
                              to_text(c.low, c.dimension), to_text(c.high, c.dimension)});
  TextTable families{
      {"family", "rows", "median before", "median", "90 %", "signed mean", "left out"},
      {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
       Align::right},
      {}};
  for (std::size_t i = 0; i < result.after.size(); ++i) {
    const RowFamily& now = result.after[i];
    const bool crossed = i < result.held_out.size();
    families.rows.push_back({now.name, fmt::format("{}", now.rows),
                             percent(result.before[i].median), percent(now.median),
                             percent(now.p90), fmt::format("{:+.1f} %", 100 * now.signed_mean),
                             crossed ? percent(result.held_out[i].held_out) : "-"});
  }
  return render(constants) + "\n" + render(families);
}

}  // namespace

int calibrate_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty()) throw UserError(fmt::format("which stack? usage: {}", usage.call));
  const CalibrationPlan plan = read_calibration_plan(line.data, options->words.front());
  const Calibration result = calibrate(line.data, plan);
  if (options->has("write"))
    write_file(file_of(line.data, stack_shelf, plan.stack),
               fitted_stack_file(line.data, plan, result));
  fmt::print("{}", text_of(result));
  return exit_code::yes;
}

}  // namespace stepsim
