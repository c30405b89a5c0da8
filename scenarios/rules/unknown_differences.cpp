#include <fmt/format.h>

#include <algorithm>

#include "scenarios/rules/rules.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

const UnmodelledKey* find_key(const Scenario& scenario, const std::string& key) {
  const auto place = std::ranges::find(scenario.unmodelled, key, &UnmodelledKey::key);
  return place == scenario.unmodelled.end() ? nullptr : &*place;
}

std::string text_of(const UnmodelledKey* key) {
  return key == nullptr ? "not" : key->value.empty() ? "said" : key->value;
}

// A key that either has; nothing where both say the same.
std::string difference_text(const std::string& key, const ComparedScenario& a,
                            const ComparedScenario& b) {
  const UnmodelledKey *in_a = find_key(a.scenario, key), *in_b = find_key(b.scenario, key);
  if (text_of(in_a) == text_of(in_b)) return "";
  const std::string& why = (in_a != nullptr ? in_a : in_b)->why;
  return fmt::format("{} ({} in {}, {} in {}){}", key, text_of(in_a), a.name, text_of(in_b), b.name,
                     why.empty() ? "" : ": " + why);
}

}  // namespace

bool has_open_rows(const Scenario& scenario) {
  const Job& job = scenario.job;
  const bool said = holds(scenario.said, "job.fill", &SaidKey::path) &&
                    !holds(scenario.assumptions, length_of_rows, &Assumption::what);
  return !job.packed && job.documents.mean <= 0 && !said;
}

std::vector<std::string> unknown_differences(const ComparedScenario& a, const ComparedScenario& b) {
  std::vector<std::string> found;
  const auto add = [&](std::string text) {
    if (!text.empty() && !holds(found, text)) found.push_back(std::move(text));
  };
  for (const Scenario* side : {&a.scenario, &b.scenario})
    for (const UnmodelledKey& each : side->unmodelled) add(difference_text(each.key, a, b));
  const ComparedScenario& open = has_open_rows(a.scenario) ? a : b;
  if (a.scenario.job.packed != b.scenario.job.packed && has_open_rows(open.scenario))
    add(
        fmt::format("how long the rows of {} are, which packing hangs on: they count as full "
                    "(job.document_length, with `mean` in tokens)",
                    open.name));
  return found;
}

}  // namespace stepsim
