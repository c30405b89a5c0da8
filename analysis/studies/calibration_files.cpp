// The file that says what may be fitted, and the stack's file with what was.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/studies/calibration.hpp"
#include "scenarios/scenario.hpp"
#include "sim/error.hpp"
#include "sim/whole_file.hpp"

namespace stepsim {
namespace {

// Three digits are more than any fit here is worth.
std::string rounded(double value, Dimension dimension) {
  return dimension == Dimension::ratio ? fmt::format("{:.3g}", value)
                                       : fmt::format("{:.3g} {}", value, si_unit(dimension));
}

std::string note_of(const CalibrationPlan& plan, const Calibration& calibration) {
  double median = 0, held_out = 0;
  for (const HeldOutFamily& family : calibration.held_out) {
    median = std::max(median, family.fitted);
    held_out = std::max(held_out, family.held_out);
  }
  const std::string cross =
      calibration.held_out.empty()
          ? ""
          : fmt::format("; worst family {:.1f} %, left out of the fit {:.1f} %", 100 * median,
                        100 * held_out);
  return fmt::format(
      "fitted with the others to {} rows, {} different runs, of {}{}. The range is "
      "where single runs would put it, eight of ten",
      calibration.rows, calibration.runs, plan.source, cross);
}

// The comment at the top is for people: it stays.
std::string leading_comment(const std::string& text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] == '#') {
    const std::size_t line = text.find('\n', end);
    if (line == std::string::npos) break;
    end = line + 1;
  }
  return text.substr(0, end);
}

}  // namespace

CalibrationPlan read_calibration_plan(const std::string& data, const std::string& stack) {
  std::vector<std::string> names;
  const Shelf shelf{"workloads/calibration", "calibration"};
  const Document document = open_entry(data, shelf, stack);
  const Table root = document.root();
  CalibrationPlan plan;
  plan.stack = stack;
  plan.source = root.text("source");
  plan.tables = root.texts("tables");
  plan.turn = root.number_or("turn", plan.turn, 1e-3, 1);
  plan.prior = root.number_or("prior", plan.prior, 1e-3, 10);
  for (const Table& each : root.tables("free")) {
    const Table bounds = each;
    plan.free.push_back({each.text("name"), 0, 0});
    const std::string low = bounds.text("low"), high = bounds.text("high");
    const auto parsed_low = parse_quantity(low), parsed_high = parse_quantity(high);
    if (!parsed_low || !parsed_high || parsed_low->value <= 0 ||
        parsed_low->value >= parsed_high->value)
      bounds.problem("low", "expected bounds above zero, the lower one first");
    else
      plan.free.back() = {plan.free.back().name, parsed_low->value, parsed_high->value};
  }
  document.finish();
  return plan;
}

std::string fitted_stack_file(const std::string& data, const CalibrationPlan& plan,
                              const Calibration& calibration) {
  const std::string path = file_of(data, stack_shelf, plan.stack);
  const std::string text = read_file(path);
  Document document = parse_document(text, path);
  for (const FittedConstant& constant : calibration.constants)
    document.set(
        constant.name,
        fmt::format("{{value: {}, low: {}, high: {}, grade: fitted, source: \"{}\"}}",
                    rounded(constant.value, constant.dimension),
                    rounded(constant.low, constant.dimension),
                    rounded(constant.high, constant.dimension), note_of(plan, calibration)));
  return leading_comment(text) + document.canonical();
}

}  // namespace stepsim
