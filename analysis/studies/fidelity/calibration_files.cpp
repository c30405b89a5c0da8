#include "analysis/studies/fidelity/calibration_files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/whole_file.hpp"

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

std::string stretch_note(const CalibrationPlan& plan, const Calibration& calibration) {
  return fmt::format(
      "the narrowest range with which intervals of {} draws miss at most one in ten of {} rows, {} "
      "different runs, on either side: {}",
      calibration.samples, calibration.rows, calibration.runs, plan.source);
}

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

bool is_key(std::string_view line, std::string_view key) {
  line.remove_prefix(indent_of(line));
  return line.starts_with(key) && line.substr(key.size()).starts_with(':');
}

// Returns where the lines end that are below and deeper than this one; those of people between them
// belong to them, too.
std::size_t end_of_block(const std::vector<std::string>& lines, std::size_t key) {
  std::size_t end = key + 1;
  while (end < lines.size() && !lines[end].empty() && indent_of(lines[end]) > indent_of(lines[key]))
    ++end;
  return end;
}

// Puts one value, on a line, where the file has that key, or behind its last neighbour; comments
// and all other lines stay as they are.
void put(std::vector<std::string>& lines, std::string_view name, const std::string& value) {
  std::size_t begin = 0, end = lines.size(), indent = 0;
  for (;;) {
    const std::size_t dot = name.find('.');
    const std::string key(name.substr(0, dot));
    std::size_t at = begin;
    while (at < end && !(indent_of(lines[at]) == indent && is_key(lines[at], key))) ++at;
    const bool last = dot == std::string_view::npos;
    if (at == end)
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(end),
                   std::string(indent, ' ') + key + ":");
    if (last) {
      const auto first = lines.begin() + static_cast<std::ptrdiff_t>(at);
      lines.erase(first + 1, lines.begin() + static_cast<std::ptrdiff_t>(end_of_block(lines, at)));
      lines[at] = fmt::format("{}{}: {}", std::string(indent, ' '), key, value);
      return;
    }
    begin = at + 1;
    end = end_of_block(lines, at);
    indent = begin < end ? indent_of(lines[begin]) : indent + 2;
    name.remove_prefix(dot + 1);
  }
}

std::string range_text(double value, const Range& range, Dimension dimension,
                       const std::string& source) {
  return fmt::format("{{value: {}, low: {}, high: {}, grade: fitted, source: \"{}\"}}",
                     rounded(value, dimension), rounded(range.low, dimension),
                     rounded(range.high, dimension), source);
}

}  // namespace

CalibrationPlan read_calibration_plan(const Catalogue& data, const std::string& name) {
  const Shelf shelf{"workloads/calibration", "calibration"};
  const Document document = open_entry(data, shelf, name);
  const Table root = document.root();
  CalibrationPlan plan;
  plan.name = name;
  plan.stacks = root.texts_or("stacks");
  if (plan.stacks.empty()) plan.stacks = {name};
  plan.source = root.text("source");
  plan.tables = root.texts("tables");
  plan.turn = root.number_or("turn", plan.turn, 1e-3, 1);
  plan.prior = root.number_or("prior", plan.prior, 1e-3, 10);
  for (const Table& bounds : root.has("free") ? root.tables("free") : std::vector<Table>{}) {
    plan.free.push_back({bounds.text("name"), 0, 0});
    const std::string low = bounds.text("low"), high = bounds.text("high");
    const auto parsed_low = parse_quantity(low), parsed_high = parse_quantity(high);
    if (!parsed_low || !parsed_high || parsed_low->value <= 0 ||
        parsed_low->value >= parsed_high->value)
      bounds.problem("low", "expected bounds above zero, the lower one first");
    else
      plan.free.back() = {plan.free.back().name, parsed_low->value, parsed_high->value};
  }
  if (plan.stacks.size() > 1 && !plan.free.empty())
    root.problem("free", "is fitted to one stack: expected nothing beside several stacks");
  document.finish();
  return plan;
}

std::string fitted_stack_file(const Catalogue& data, const std::string& stack,
                              const CalibrationPlan& plan, const Calibration& calibration) {
  const std::string text = read_file(file_of(data, stack_shelf, stack));
  const auto read = lines_in(text);
  std::vector<std::string> lines(read.begin(), read.end());
  for (const FittedConstant& c : calibration.constants)
    put(lines, c.name,
        range_text(c.value, {c.low, c.high}, c.dimension, note_of(plan, calibration)));
  if (calibration.samples > 0)
    put(lines, "unexplained",
        range_text(1, calibration.unexplained, Dimension::ratio, stretch_note(plan, calibration)));
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

}  // namespace stepsim
