#include "analysis/studies/anchor/anchored_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/studies/anchor/posterior.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

struct FamilyFigures {
  std::size_t rows = 0;
  std::vector<double> before, after, widths;
  std::size_t held = 0, anchored_held = 0;
};

Ratios ratios_of(const PredictedRow& row) {
  return mapped(row.drawn, [](const DrawnError& each) { return std::log1p(each.error); });
}

bool holds_zero(const Range& range) {
  return range.low <= 0 && range.high >= 0;
}

// Anchors the row on each of the others.
void add_row(const PredictedRow& row, std::span<const PredictedRow* const> family,
             FamilyFigures& figures) {
  const Range range{std::log1p(row.interval->low), std::log1p(row.interval->high)};
  figures.rows += 1;
  figures.before.push_back(std::abs(row.step_error));
  figures.held += holds_zero(range) ? 1 : 0;
  for (const PredictedRow* on : family) {
    if (on == &row) continue;
    const AnchoredRatio ratio = anchored_ratio(ratios_of(*on), std::log1p(on->step_error),
                                               ratios_of(row), std::log1p(row.step_error), {});
    figures.after.push_back(std::abs(std::expm1(ratio.middle)));
    figures.anchored_held += holds_zero(ratio.likely) ? 1 : 0;
    figures.widths.push_back((ratio.likely.high - ratio.likely.low) /
                             std::max(range.high - range.low, 1e-9));
  }
}

AnchoredFamily family_of(const std::string& name, FamilyFigures figures) {
  for (auto* list : {&figures.before, &figures.after, &figures.widths}) std::ranges::sort(*list);
  const auto share = [](std::size_t part, std::size_t of) {
    return static_cast<double>(part) / static_cast<double>(std::max<std::size_t>(of, 1));
  };
  return {.name = name,
          .rows = figures.rows,
          .median = quantile(figures.before, 0.5),
          .p90 = quantile(figures.before, 0.9),
          .anchored_median = quantile(figures.after, 0.5),
          .anchored_p90 = quantile(figures.after, 0.9),
          .held = share(figures.held, figures.rows),
          .anchored_held = share(figures.anchored_held, figures.after.size()),
          .width = quantile(figures.widths, 0.5)};
}

// Rows of one source are of one site, as far as a table says.
std::string source_of(const StepRow& row) {
  const std::string machine = row.said("hardware").empty() ? row.said("gpu") : row.said("hardware");
  return fmt::format("{} | {} | {} | {}", row.family, row.said("source"), machine,
                     row.said("framework"));
}

void append_to(const FamilyFigures& from, FamilyFigures& to) {
  to.rows += from.rows;
  to.held += from.held;
  to.anchored_held += from.anchored_held;
  append(to.before, from.before);
  append(to.after, from.after);
  append(to.widths, from.widths);
}

}  // namespace

std::vector<AnchoredFamily> anchored_families(std::span<const StepRow> rows,
                                              std::span<const PredictedRow> predicted) {
  std::map<std::string, std::vector<const PredictedRow*>> by_source;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PredictedRow& row = predicted[i];
    const bool whole = row.predicted() && row.timed && row.interval && !row.drawn.empty() &&
                       row.drawn.size() == row.drawn.back().draw.of;
    if (whole) by_source[source_of(rows[i])].push_back(&row);
  }
  std::vector<AnchoredFamily> families;
  FamilyFigures all;
  for (const auto& [source, members] : by_source) {
    if (members.size() < least_rows_of_source) continue;
    FamilyFigures figures;
    for (const PredictedRow* row : members) add_row(*row, members, figures);
    append_to(figures, all);
    families.push_back(family_of(source, std::move(figures)));
  }
  families.push_back(family_of("all", std::move(all)));
  return families;
}

}  // namespace stepsim
