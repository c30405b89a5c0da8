// `fit stack` fits the free constants of a stack to its measured rows.
#include <fmt/format.h>

#include "analysis/studies/fidelity/calibration_files.hpp"
#include "cli/fits.hpp"
#include "cli/screen.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

std::string text_of(const Calibration& result) {
  TextTable constants{{"constant", " before", " fitted", " low", " high"}};
  for (const FittedConstant& c : result.constants)
    constants.rows.push_back({c.name, to_text(c.before, c.dimension), to_text(c.value, c.dimension),
                              to_text(c.low, c.dimension), to_text(c.high, c.dimension)});
  if (result.samples > 0)
    constants.rows.push_back({"unexplained", "", "1", fmt::format("{:.2f}", result.unexplained.low),
                              fmt::format("{:.2f}", result.unexplained.high)});
  TextTable families{{"family", " rows", " median before", " median", " 90 %", " signed mean",
                      " left out", " inside 80 %"}};
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

int fit_stack(const CommandLine& line, std::span<const std::string> words, const Options& options) {
  const Shelf shelf{"workloads/calibration", "plan"};
  const std::vector<std::string> plans = names_on(line.data, shelf);
  if (plans.empty())
    throw UserError({{line.data.file(shelf.folder), 0, "", "holds no plan (*.yaml)"}});
  if (words.empty())
    throw UserError(fmt::format("fit stack: which plan? expected {}", one_of(plans)));
  if (words.size() > 1)
    throw UserError(fmt::format("fit stack: one plan at a time; unexpected \"{}\"", words[1]));
  const std::string& wanted = words.front();
  if (!holds(plans, wanted))
    throw UserError(fmt::format("no plan \"{}\"{}; there are {}", wanted,
                                did_you_mean(wanted, plans), one_of(plans)));
  const auto samples = count_of(options, "samples", 0, 4096).value_or(16);
  const CalibrationPlan plan = read_calibration_plan(line.data, wanted);
  const Calibration result = calibrate(line.data, plan, samples);
  if (options.has("write"))
    for (const std::string& stack : plan.stacks)
      write_file(file_of(line.data, stack_shelf, stack),
                 fitted_stack_file(line.data, stack, plan, result));
  say("{}", text_of(result));
  return exit_code::yes;
}

}  // namespace stepsim
