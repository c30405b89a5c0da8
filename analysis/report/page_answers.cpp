#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "analysis/report/page.hpp"
#include "analysis/studies/explain/setting_rows.hpp"
#include "analysis/studies/explain/summary.hpp"
#include "sim/base/lists.hpp"

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
  return summary_text(explanation) + " The rows add up to the gap.";
}

RecordList path_of(const ExplainedSide& side) {
  return list_of(side.path, [](const PathPart& part) -> Records {
    const auto causes = mapped(part.causes, [](const auto& each) {
      return std::pair(std::string(to_text(each.first)), each.second.value);
    });
    return {{"title", "a stretch of the step", title_of(part)},
            {"seconds", "it takes", part.seconds},
            {"causes", "of it, the largest first", pairs_of(causes)}};
  });
}

std::string parting_text(const Explanation& e) {
  if (!e.parting) return "";
  return fmt::format("The paths part in {}: there A takes {} and B {}.", title_of(e.parting->first),
                     to_text(e.parting->first.seconds), to_text(e.parting->second.seconds));
}

// Says which constants move the gap most.
RecordList movers_in_words(const Explanation& e) {
  return list_of(e.draws ? e.draws->movers : std::vector<Mover>{}, [](const Mover& mover) {
    const auto& [constant, at_low, at_high] = mover;
    return fmt::format("{} ({}): with {} A would take {} {} than B, with {} {} {}", constant.name,
                       to_text(constant.grade), value_text(constant, constant.low),
                       to_text(Seconds{std::abs(at_low)}), at_low < 0 ? "less" : "more",
                       value_text(constant, constant.high), to_text(Seconds{std::abs(at_high)}),
                       at_high < 0 ? "less" : "more");
  });
}

// Says what is not equal between the two, and other remarks on them.
std::vector<std::string> notes_of(const Explanation& e) {
  std::vector<std::string> notes;
  if (const std::string measured = measured_text(e); !measured.empty())
    notes.push_back(measured + ".");
  if (e.at_limit) notes.push_back(at_limit_text(e));
  for (const std::string& note : e.fairness.too_large) notes.push_back(note + ".");
  for (const auto& [word, list] :
       {std::pair{"Not equal", &e.fairness.unequal}, std::pair{"Equal", &e.fairness.equal}})
    if (!list->empty()) notes.push_back(fmt::format("{}: {}.", word, fmt::join(*list, "; ")));
  return notes;
}

// Returns the unit in which the page writes numbers: seconds, bytes, joules, or none.
std::string_view unit_of(Dimension dimension) {
  if (dimension == Dimension::seconds) return "s";
  return dimension == Dimension::bytes ? "B" : dimension == Dimension::joules ? "J" : "";
}

}  // namespace

Records page_gap(const Explanation& e) {
  const RecordList rows = list_of(e.rows, [&](const ExplainRow& row) -> Records {
    return {{"cause", "cause", name_of(row)},
            {"seconds", "positive: it makes the first step longer", row.seconds},
            {"reading", "what if it were free", counterfactual_text(e, row)},
            {"constants", "that carry it, with their grades", carriers_text(row)},
            {"range", "8 of 10 draws", row.range}};
  });
  return {
      {"headline", "in a sentence", headline_of(e)},
      {"sureness", "how many draws agree", e.draws ? draws_text(e) + "." : ""},
      {"parting", "where the paths part", parting_text(e)},
      {"notes", "what is not equal", list_of(notes_of(e))},
      {"movers", "constants that move the gap most", movers_in_words(e)},
      {"settings", "the gap by setting",
       e.settings ? std::optional(settings_records(*e.settings)) : std::nullopt},
      {"rows", "they add up to the gap", rows},
      {"paths", "of the two steps", RecordList{{{"", "", path_of(e.a)}, {"", "", path_of(e.b)}}}}};
}

Records page_claims(std::span<const JudgedClaim> claims) {
  return list_of(claims,
                 [](const JudgedClaim& claim) -> Records {
                   const std::size_t draws =
                       claim.conditions.empty() ? 0 : claim.conditions.front().draws;
                   const auto strip = [](const JudgedCondition& condition) -> Records {
                     return {{"name", "empty: the claim as it stands", condition.name},
                             {"values", "of the draws",
                              list_of(condition.values, [](double value) { return value; })},
                             {"stated", "under stated constants", condition.stated}};
                   };
                   return {
                       {"id", "of the claim", claim.id},
                       {"text", "what is claimed", claim.text},
                       {"verdict", "of it", to_text(claim.verdict)},
                       {"reason", "of the verdict", claim.reason},
                       {"moved", "which constants move it most",
                        claim.probability ? movers_text(claim) : ""},
                       {"draws", "behind the probability", draws},
                       {"probability", "share of the draws", claim.probability},
                       {"unit", "of what is claimed", unit_of(claim.dimension)},
                       {"at_least", "that is claimed", claim.at_least},
                       {"at_most", "that is claimed", claim.at_most},
                       {"conditions", "a strip of draws each", list_of(claim.conditions, strip)}};
                 })
      .items;
}

}  // namespace stepsim
