#include "analysis/studies/claims/judgement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "analysis/studies/claims/claim_carriers.hpp"
#include "scenarios/rules/rules.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// The claim as it stands has this many draws where allowed, whether they are needed for the verdict
// or not: they show which constants the quantity goes with.
constexpr std::uint32_t telling_draws = 16;
// This many constants of either kind are put at both ends of their ranges.
constexpr std::size_t most_telling = 4;
constexpr std::size_t most_movers = 3;

enum class PointAnswer : std::uint8_t { holds, fails, unsure };

bool within(const Assertion& assertion, double value) {
  // A quantity that is no number (a gap of nothing) holds nothing.
  return !std::isnan(value) && !(assertion.low && value < *assertion.low) &&
         !(assertion.high && value > *assertion.high);
}

// A claim under one condition, and what is known of it so far.
struct ClaimTrial {
  const Claim* claim = nullptr;
  const Condition* condition = nullptr;    // null: the claim as it stands
  std::vector<double> stated;              // [assertion]
  std::vector<std::vector<double>> drawn;  // [draw][assertion]

  std::uint32_t holds() const {
    return static_cast<std::uint32_t>(std::ranges::count_if(
        drawn, [&](const std::vector<double>& values) { return all(values); }));
  }
  bool all(const std::vector<double>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!within(claim->assertions[i], values[i])) return false;
    return true;
  }
  double probability() const {
    return static_cast<double>(holds()) / static_cast<double>(drawn.size());
  }
  PointAnswer answer() const {
    return probability() >= sure       ? PointAnswer::holds
           : probability() <= 1 - sure ? PointAnswer::fails
                                       : PointAnswer::unsure;
  }
  // More draws could change the answer, or are wanted to see what moves it.
  bool open() const {
    const auto draws = static_cast<std::uint32_t>(drawn.size());
    return may_change(holds(), draws) || (condition == nullptr && draws < telling_draws);
  }
  // Returns the assertion that a reader wants to hear about: the first that fails.
  std::size_t in_question() const {
    for (std::size_t i = 0; i < stated.size(); ++i)
      if (!within(claim->assertions[i], stated[i])) return i;
    for (std::size_t i = 0; i < stated.size(); ++i)
      for (const std::vector<double>& values : drawn)
        if (!within(claim->assertions[i], values[i])) return i;
    return 0;
  }
};

// Returns the values of all assertions of a trial under one draw; nothing while replays are
// missing.
std::optional<std::vector<double>> values_of(const ClaimTrial& trial,
                                             const std::optional<Draw>& draw, ClaimPoints& points) {
  std::vector<double> values;
  bool complete = true;
  for (const Assertion& assertion : trial.claim->assertions) {
    const auto value = value_of(*trial.claim, assertion.quantity, trial.condition, draw, points);
    complete = complete && value.has_value();
    values.push_back(value.value_or(0));
  }
  if (!complete) return std::nullopt;
  return values;
}

void play(std::vector<ClaimTrial>& trials, const JudgementOptions& options, ClaimPoints& points) {
  for (ClaimTrial& trial : trials) values_of(trial, std::nullopt, points);
  points.ask();
  for (ClaimTrial& trial : trials) trial.stated = *values_of(trial, std::nullopt, points);
  for (std::uint32_t done = 0; done < options.most_draws; done += draws_at_once) {
    const std::uint32_t end = std::min(done + draws_at_once, options.most_draws);
    std::vector<ClaimTrial*> open;
    for (ClaimTrial& trial : trials)
      if (done == 0 || trial.open()) open.push_back(&trial);
    for (const ClaimTrial* trial : open)
      for (std::uint32_t i = done; i < end; ++i)
        values_of(*trial, draw_number(i, options.seed), points);
    points.ask();
    for (ClaimTrial* trial : open)
      for (std::uint32_t i = done; i < end; ++i)
        trial->drawn.push_back(*values_of(*trial, draw_number(i, options.seed), points));
  }
}

std::vector<double> drawn_values(const ClaimTrial& trial, std::size_t assertion) {
  return mapped(trial.drawn, [&](const std::vector<double>& each) { return each[assertion]; });
}

JudgedFigure figure_of(const ClaimTrial& trial, std::size_t number) {
  std::vector<double> values = drawn_values(trial, number);
  const auto holds = std::ranges::count_if(
      values, [&](double value) { return within(trial.claim->assertions[number], value); });
  const Range range = range_of(values, trial.stated[number]);
  return {static_cast<std::uint32_t>(holds),
          static_cast<std::uint32_t>(values.size()),
          trial.stated[number],
          range.low,
          range.high,
          std::move(values)};
}

// It holds when all assertions do.
JudgedCondition summary_of(const ClaimTrial& trial) {
  JudgedCondition judged{figure_of(trial, trial.in_question()),
                         trial.condition == nullptr ? "" : trial.condition->name};
  judged.holds = trial.holds();
  return judged;
}

// Returns the constants that carry what tells the claim's scenarios apart, and those that go with
// the quantity over the draws.
std::vector<NamedConstant> suspects(const ClaimTrial& trial, const JudgementOptions& options,
                                    ClaimCarriers& carriers, ClaimPoints& points) {
  std::vector<NamedConstant> found = carriers.of(*trial.claim, points);
  if (found.size() > most_carrying) found.erase(found.begin() + most_carrying, found.end());
  std::vector<NamedConstant> constants;
  for (const ClaimScenario& each : trial.claim->scenarios) {
    const AllowedScenario run = allowed_scenario(options.data, each.source, each.settings);
    if (run.scenario) add_uncertain(constants, run.scenario->constants);
  }
  const std::vector<double> values = drawn_values(trial, trial.in_question());
  std::vector<Draw> draws;
  for (std::uint32_t i = 0; i < values.size(); ++i) draws.push_back(draw_number(i, options.seed));
  add_uncertain(found, telling_constants(constants, values, draws, most_telling));
  return found;
}

// The claim with one constant at an end of its range in all of its scenarios that have it.
Claim with_constant(const Claim& claim, const NamedConstant& constant, RangeEnd end,
                    const JudgementOptions& options) {
  Claim changed = claim;
  for (ClaimScenario& scenario : changed.scenarios) {
    const AllowedScenario found =
        allowed_scenario(options.data, scenario.source, scenario.settings);
    if (!found.scenario) continue;
    if (auto own = setting_at(found.scenario->constants, constant.name, end))
      scenario.settings.push_back(*std::move(own));
  }
  return changed;
}

// The quantity in question of one trial, with each suspect at both ends of its range.
struct Ends {
  const ClaimTrial* trial = nullptr;
  std::vector<NamedConstant> constants;
  std::vector<Claim> low, high;
};

Ends ends_of(const ClaimTrial& trial, const JudgementOptions& options, ClaimCarriers& carriers,
             ClaimPoints& points) {
  Ends ends{&trial, suspects(trial, options, carriers, points), {}, {}};
  for (const NamedConstant& c : ends.constants) {
    ends.low.push_back(with_constant(*trial.claim, c, RangeEnd::low, options));
    ends.high.push_back(with_constant(*trial.claim, c, RangeEnd::high, options));
  }
  return ends;
}

std::optional<double> value_at(const Claim& claim, const ClaimTrial& trial, ClaimPoints& points) {
  const ClaimQuantity& quantity = trial.claim->assertions[trial.in_question()].quantity;
  return value_of(claim, quantity, trial.condition, std::nullopt, points);
}

std::vector<Mover> movers_of(const Ends& ends, ClaimPoints& points) {
  std::vector<Mover> movers;
  for (std::size_t i = 0; i < ends.constants.size(); ++i)
    movers.push_back({ends.constants[i], *value_at(ends.low[i], *ends.trial, points),
                      *value_at(ends.high[i], *ends.trial, points)});
  return strongest(std::move(movers), ends.trial->stated[ends.trial->in_question()], most_movers);
}

// Returns by claim what moves its quantity most, under no other condition.
std::map<const Claim*, std::vector<Mover>> all_movers(const std::vector<ClaimTrial>& trials,
                                                      const JudgementOptions& options,
                                                      ClaimPoints& points) {
  ClaimCarriers carriers(options.data);
  std::vector<Ends> all;
  for (const ClaimTrial& trial : trials)
    if (trial.condition == nullptr) all.push_back(ends_of(trial, options, carriers, points));
  for (const Ends& ends : all)
    for (std::size_t i = 0; i < ends.constants.size(); ++i) {
      value_at(ends.low[i], *ends.trial, points);
      value_at(ends.high[i], *ends.trial, points);
    }
  points.ask();
  std::map<const Claim*, std::vector<Mover>> movers;
  for (const Ends& ends : all) movers[ends.trial->claim] = movers_of(ends, points);
  return movers;
}

std::string bounds_text(const Assertion& a) {
  if (a.low && a.high)
    return fmt::format("{} to {}", figure_text(*a.low, a.dimension),
                       figure_text(*a.high, a.dimension));
  return a.low ? "at least " + figure_text(*a.low, a.dimension)
               : "at most " + figure_text(*a.high, a.dimension);
}

std::string value_text(const Assertion& assertion, const JudgedPart& part) {
  return fmt::format("{} is {} ({} to {} in 8 of 10 draws; claimed: {})", assertion.quantity.text,
                     figure_text(part.stated, assertion.dimension),
                     figure_text(part.low, assertion.dimension),
                     figure_text(part.high, assertion.dimension), bounds_text(assertion));
}

JudgedPart part_of(const ClaimTrial& trial, std::size_t number) {
  JudgedPart part{figure_of(trial, number), {}};
  part.text = value_text(trial.claim->assertions[number], part);
  return part;
}

// Says what else the claim says, and whether that holds: it may be half true.
std::string other_parts(const std::vector<JudgedPart>& parts, std::size_t in_question) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (i != in_question)
      text += fmt::format("; and {}: holds in {:.0f} %", parts[i].text,
                          100.0 * parts[i].holds / std::max(1u, parts[i].draws));
  return text;
}

// Says which resource each scenario of the quantity is bound by: the one that the metric is about.
std::string resources_text(const ClaimTrial& trial, ClaimPoints& points) {
  const ClaimQuantity& quantity = trial.claim->assertions[trial.in_question()].quantity;
  std::vector<std::string> parts;
  std::set<std::size_t> seen;
  for (const MetricOf& metric : quantity.metrics) {
    const std::size_t most = quantity.along.empty() ? 2 : 1;  // points of a sweep are much alike
    if (parts.size() == most || !seen.insert(metric.scenario).second) continue;
    const PointFacts* facts = facts_of(*trial.claim, metric.scenario, trial.condition, points);
    const bool memory =
        claim_dimension(metric.metric) == Dimension::bytes || metric.metric == "fits";
    parts.push_back(fmt::format("{}: {}", trial.claim->scenarios[metric.scenario].alias,
                                !facts->of("step_time") ? "cannot run: " + facts->bound_by
                                : memory                ? "device memory, " + facts->largest
                                                        : "bound by " + facts->bound_by));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// Says what is unknown of the scenarios that a part of the claim compares, the first against each
// other one.
std::vector<std::string> unknown_in(const Claim& claim, const Assertion& part,
                                    const Catalogue& data) {
  std::vector<std::pair<std::string, Scenario>> compared;
  std::set<std::size_t> seen;
  for (const MetricOf& metric : part.quantity.metrics) {
    if (!seen.insert(metric.scenario).second) continue;
    const ClaimScenario& each = claim.scenarios[metric.scenario];
    AllowedScenario found = allowed_scenario(data, each.source, each.settings);
    if (found.scenario) compared.emplace_back(each.alias, *std::move(found.scenario));
  }
  const auto named = [&](std::size_t i) {
    return ComparedScenario{compared[i].first, compared[i].second};
  };
  std::vector<std::string> unknown;
  for (std::size_t i = 1; i < compared.size(); ++i)
    for (std::string& each : unknown_differences(named(0), named(i)))
      unknown.push_back(std::move(each));
  return unknown;
}

std::vector<std::string> unknown_in(const Claim& claim, const Catalogue& data) {
  std::vector<std::string> unknown;
  for (const Assertion& part : claim.assertions)
    for (std::string& each : unknown_in(claim, part, data))
      if (!holds(unknown, each)) unknown.push_back(std::move(each));
  return unknown;
}

JudgedClaim conclude(const std::vector<const ClaimTrial*>& trials, const std::vector<Mover>& movers,
                     std::vector<std::string> unknown, ClaimPoints& points) {
  const ClaimTrial& base = *trials.front();
  JudgedClaim judged{.id = base.claim->id, .text = base.claim->text};
  std::vector<std::string> flips, open;
  for (const ClaimTrial* trial : trials) {
    judged.conditions.push_back(summary_of(*trial));
    if (trial == &base) continue;
    if (trial->answer() == PointAnswer::unsure) open.push_back(trial->condition->name);
    if (trial->answer() != PointAnswer::unsure && trial->answer() != base.answer())
      flips.push_back(trial->condition->name);
  }
  judged.probability = base.probability();
  judged.unknown = std::move(unknown);
  judged.verdict = base.answer() == PointAnswer::unsure || !judged.unknown.empty()
                       ? Verdict::undecided
                   : !flips.empty()                      ? Verdict::depends
                   : base.answer() == PointAnswer::holds ? Verdict::supported
                                                         : Verdict::refuted;
  for (std::size_t i = 0; i < base.claim->assertions.size(); ++i)
    judged.parts.push_back(part_of(base, i));
  judged.reason =
      judged.parts[base.in_question()].text + other_parts(judged.parts, base.in_question());
  if (judged.verdict == Verdict::depends)
    judged.reason +=
        fmt::format("; it {} {}", base.answer() == PointAnswer::holds ? "fails" : "holds",
                    fmt::join(flips, ", "));
  if (!open.empty()) judged.reason += fmt::format("; open {}", fmt::join(open, ", "));
  if (!judged.unknown.empty()) {
    judged.reason = fmt::format("they differ in what is not modelled: {}; without it {}",
                                fmt::join(judged.unknown, "; "), judged.reason);
  } else if (judged.verdict == Verdict::undecided) {
    for (const Mover& mover : movers) judged.to_measure.push_back(mover.constant.name);
    judged.reason += judged.to_measure.empty()
                         ? "; no single constant decides it"
                         : fmt::format("; to measure: {}", fmt::join(judged.to_measure, ", "));
  }
  judged.reason += "; " + resources_text(base, points);
  const Assertion& asserted = base.claim->assertions[base.in_question()];
  judged.dimension = asserted.dimension;
  judged.at_least = asserted.low;
  judged.at_most = asserted.high;
  judged.movers = movers;
  return judged;
}

}  // namespace

std::string_view to_text(Verdict verdict) {
  constexpr std::array<std::string_view, 4> names{"supported", "refuted", "depends", "undecided"};
  return names[static_cast<std::size_t>(verdict)];
}

std::string figure_text(double value, Dimension dimension) {
  if (!std::isfinite(value)) return "no number";
  if (dimension != Dimension::ratio) return to_text(value, dimension);
  return std::abs(value) < 1000 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

std::string movers_text(const JudgedClaim& claim) {
  std::vector<std::string> words;
  words.reserve(claim.movers.size());
  for (const auto& [constant, at_low, at_high] : claim.movers)
    words.push_back(fmt::format(
        "{} ({} at {}, {} at {}; {})", constant.name, figure_text(at_low, claim.dimension),
        value_text(constant, constant.low), figure_text(at_high, claim.dimension),
        value_text(constant, constant.high), to_text(constant.grade)));
  return words.empty() ? "none of the constants that were tried moves it by a fiftieth"
                       : fmt::format("moved most by {}", fmt::join(words, ", "));
}

std::string sentence_text(const JudgedClaim& claim) {
  if (!claim.probability) return claim.reason;
  constexpr std::array<std::string_view, 4> answers{"yes", "no", "it depends", "open"};
  const JudgedCondition& base = claim.conditions.front();
  std::string text = fmt::format("{}: ", answers[static_cast<std::size_t>(claim.verdict)]);
  if (base.low < base.high)
    text += fmt::format("{}, likely {} to {}; ", figure_text(base.stated, claim.dimension),
                        figure_text(base.low, claim.dimension),
                        figure_text(base.high, claim.dimension));
  text += fmt::format("it holds in {} of {} draws of the constants", base.holds, base.draws);
  if (!claim.unknown.empty())
    text += fmt::format(", but hangs on what is not modelled: {}", claim.unknown.front());
  else if (claim.verdict == Verdict::undecided && !claim.movers.empty())
    text += fmt::format(", and depends most on {}", claim.movers.front().constant.name);
  return text;
}

std::vector<std::string> condition_texts(const JudgedClaim& claim) {
  std::vector<std::string> texts;
  for (std::size_t i = 1; i < claim.conditions.size(); ++i) {
    const JudgedCondition& each = claim.conditions[i];
    texts.push_back(fmt::format("{}: {} ({} to {}), holds in {} of {} draws", each.name,
                                figure_text(each.stated, claim.dimension),
                                figure_text(each.low, claim.dimension),
                                figure_text(each.high, claim.dimension), each.holds, each.draws));
  }
  return texts;
}

std::vector<JudgedClaim> judge(std::span<const Claim> claims, const JudgementOptions& options) {
  ClaimPoints points(options.data, options.workers, options.progress);
  std::vector<ClaimTrial> trials;
  for (const Claim& claim : claims) {
    if (!claim.missing.empty()) continue;
    trials.push_back({&claim, nullptr, {}, {}});
    for (const Condition& condition : claim.conditions)
      trials.push_back({&claim, &condition, {}, {}});
  }
  play(trials, options, points);
  const auto movers = all_movers(trials, options, points);
  std::vector<JudgedClaim> judged;
  for (const Claim& claim : claims) {
    if (!claim.missing.empty()) {
      judged.push_back({.id = claim.id, .text = claim.text});
      judged.back().reason = "not modelled: " + claim.missing;
      continue;
    }
    std::vector<const ClaimTrial*> own;
    for (const ClaimTrial& trial : trials)
      if (trial.claim == &claim) own.push_back(&trial);
    judged.push_back(conclude(own, movers.at(&claim), unknown_in(claim, options.data), points));
  }
  return judged;
}

}  // namespace stepsim
