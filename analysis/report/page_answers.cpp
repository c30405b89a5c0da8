#include "analysis/report/page_answers.hpp"

#include <fmt/format.h>

#include <cmath>

namespace stepsim {
namespace {

constexpr std::size_t most_constants = 4;

std::string carriers_text(const ExplainRow& row) {
  std::string text;
  for (std::size_t i = 0; i < row.carriers.size() && i < most_constants; ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", row.carriers[i].constant.name,
                        to_text(row.carriers[i].constant.grade));
  return text;
}

std::string headline_of(const Explanation& explanation) {
  const double a = explanation.a.step_time.value, b = explanation.b.step_time.value;
  std::string text =
      fmt::format("A takes {}, B {}: {} {}. The rows add up to that.",
                  to_text(explanation.a.step_time), to_text(explanation.b.step_time),
                  to_text(Seconds{std::abs(a - b)}), a >= b ? "more for A" : "less for A");
  return text;
}

std::vector<PagePathPart> path_of(const ExplainedSide& side) {
  std::vector<PagePathPart> path;
  for (const PathPart& part : side.path) {
    path.push_back({title_of(part), part.seconds.value, {}});
    for (const auto& [cause, seconds] : part.causes)
      path.back().causes.emplace_back(to_text(cause), seconds.value);
  }
  return path;
}

std::string parting_text(const Explanation& e) {
  if (!e.parting) return "";
  return fmt::format("The paths part in {}: there A takes {} and B {}.", title_of(e.parting->first),
                     to_text(e.parting->first.seconds), to_text(e.parting->second.seconds));
}

void add_sureness(const Explanation& e, PageGap& gap) {
  if (!e.draws) return;
  gap.sureness = draws_text(e) + ".";
  for (const auto& [constant, at_low, at_high] : e.draws->movers)
    gap.movers.push_back(
        fmt::format("{} ({}): with {} A would take {} {} than B, with {} {} {}", constant.name,
                    to_text(constant.grade), value_text(constant, constant.low),
                    to_text(Seconds{std::abs(at_low)}), at_low < 0 ? "less" : "more",
                    value_text(constant, constant.high), to_text(Seconds{std::abs(at_high)}),
                    at_high < 0 ? "less" : "more"));
}

}  // namespace

PageGap page_gap(const Explanation& explanation) {
  PageGap gap;
  gap.headline = headline_of(explanation);
  const Fairness& fairness = explanation.fairness;
  for (const std::string& note : fairness.too_large) gap.notes.push_back(note + ".");
  if (!fairness.unequal.empty())
    gap.notes.push_back(fmt::format("Not equal: {}.", fmt::join(fairness.unequal, "; ")));
  if (!fairness.equal.empty())
    gap.notes.push_back(fmt::format("Equal: {}.", fmt::join(fairness.equal, "; ")));
  gap.path_a = path_of(explanation.a);
  gap.path_b = path_of(explanation.b);
  gap.parting = parting_text(explanation);
  add_sureness(explanation, gap);
  if (explanation.at_limit) gap.notes.insert(gap.notes.begin(), at_limit_text(explanation));
  for (const ExplainRow& row : explanation.rows)
    gap.rows.push_back(
        {std::string(to_text(row.cause)), row.seconds.value, row.standard_error.value,
         row.range ? std::optional(std::pair(row.range->low, row.range->high)) : std::nullopt,
         counterfactual_text(explanation, row), carriers_text(row)});
  if (explanation.residual.value != 0)
    gap.rows.push_back(
        {"residual", explanation.residual.value, 0, {}, "with every cause free, this is left", ""});
  return gap;
}

std::vector<PageClaim> page_claims(std::span<const JudgedClaim> claims) {
  std::vector<PageClaim> rows;
  rows.reserve(claims.size());
  for (const JudgedClaim& claim : claims)
    rows.push_back({claim.id, claim.text, std::string(to_text(claim.verdict)), claim.probability,
                    claim.reason, claim.probability ? movers_text(claim) : "",
                    claim.conditions.empty() ? 0 : claim.conditions.front().draws});
  return rows;
}

}  // namespace stepsim
