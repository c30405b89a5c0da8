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

}  // namespace

PageGap page_gap(const Explanation& explanation) {
  PageGap gap{headline_of(explanation), explanation.fairness, {}};
  if (explanation.at_limit) gap.notes.insert(gap.notes.begin(), at_limit_text(explanation));
  for (const ExplainRow& row : explanation.rows)
    gap.rows.push_back({std::string(to_text(row.cause)), row.seconds.value,
                        row.standard_error.value, counterfactual_text(explanation, row),
                        carriers_text(row)});
  if (explanation.residual.value != 0)
    gap.rows.push_back(
        {"residual", explanation.residual.value, 0, "with every cause free, this is left", ""});
  return gap;
}

std::vector<PageClaim> page_claims(std::span<const JudgedClaim> claims) {
  std::vector<PageClaim> rows;
  rows.reserve(claims.size());
  for (const JudgedClaim& claim : claims)
    rows.push_back({claim.id, claim.text, std::string(to_text(claim.verdict)), claim.probability,
                    claim.reason});
  return rows;
}

}  // namespace stepsim
