#include "analysis/studies/judgement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "analysis/studies/claim_points.hpp"
#include "analysis/studies/validation.hpp"

namespace stepsim {
namespace {

constexpr std::uint32_t batch = 8;  // draws that make a Latin hypercube together
// A claim holds when so many draws say so, and does not when so few do.
constexpr double sure = 0.9;
// So many constants are tried one by one, those that go with the quantity in the draws.
constexpr std::size_t most_suspects = 10;
// What moves a quantity by less than this share of it does not decide.
constexpr double least_swing = 0.02;

enum class Answer : std::uint8_t { holds, fails, unsure };

Draw draw_number(std::uint32_t number, std::uint64_t seed) {
  return {.seed = seed + number / batch, .sample = number % batch, .of = batch};
}

bool within(const Assertion& assertion, double value) {
  // A quantity that is no number (a gap of nothing) holds nothing.
  return !std::isnan(value) && !(assertion.low && value < *assertion.low) &&
         !(assertion.high && value > *assertion.high);
}

// A claim under one condition, and what is known of it so far.
struct Trial {
  const Claim* claim = nullptr;
  const Condition* condition = nullptr;    // null: the claim as it stands
  std::vector<double> stated;              // [assertion]
  std::vector<std::vector<double>> drawn;  // [draw][assertion]

  std::uint32_t holds() const {
    return static_cast<std::uint32_t>(
        std::count_if(drawn.begin(), drawn.end(),
                      [&](const std::vector<double>& values) { return all(values); }));
  }
  bool all(const std::vector<double>& values) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!within(claim->assertions[i], values[i])) return false;
    return true;
  }
  double probability() const {
    return static_cast<double>(holds()) / static_cast<double>(drawn.size());
  }
  Answer answer() const {
    return probability() >= sure       ? Answer::holds
           : probability() <= 1 - sure ? Answer::fails
                                       : Answer::unsure;
  }
  // More draws could change the answer: the interval of the probability reaches across a border.
  bool open() const {
    const double n = static_cast<double>(drawn.size()), p = probability();
    if (p == 0 || p == 1) return false;
    constexpr double z = 1.28;  // eight of ten
    const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
    const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);
    const auto crosses = [&](double border) {
      return middle - half < border && border < middle + half;
    };
    return crosses(sure) || crosses(1 - sure);
  }
  // The assertion that a reader wants to hear about: the first that fails.
  std::size_t in_question() const {
    for (std::size_t i = 0; i < stated.size(); ++i)
      if (!within(claim->assertions[i], stated[i])) return i;
    for (std::size_t i = 0; i < stated.size(); ++i)
      for (const std::vector<double>& values : drawn)
        if (!within(claim->assertions[i], values[i])) return i;
    return 0;
  }
};

// All assertions of a trial under one draw; nothing while replays are missing.
std::optional<std::vector<double>> values_of(const Trial& trial, const std::optional<Draw>& draw,
                                             ClaimPoints& points) {
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

void play(std::vector<Trial>& trials, const JudgementOptions& options, ClaimPoints& points) {
  for (Trial& trial : trials) values_of(trial, std::nullopt, points);
  points.ask();
  for (Trial& trial : trials) trial.stated = *values_of(trial, std::nullopt, points);
  for (std::uint32_t done = 0; done < options.most_draws; done += batch) {
    const std::uint32_t end = std::min(done + batch, options.most_draws);
    std::vector<Trial*> open;
    for (Trial& trial : trials)
      if (done == 0 || trial.open()) open.push_back(&trial);
    for (const Trial* trial : open)
      for (std::uint32_t i = done; i < end; ++i)
        values_of(*trial, draw_number(i, options.seed), points);
    points.ask();
    for (Trial* trial : open)
      for (std::uint32_t i = done; i < end; ++i)
        trial->drawn.push_back(*values_of(*trial, draw_number(i, options.seed), points));
  }
}

std::vector<double> drawn_values(const Trial& trial, std::size_t assertion) {
  std::vector<double> values;
  values.reserve(trial.drawn.size());
  for (const std::vector<double>& each : trial.drawn) values.push_back(each[assertion]);
  return values;
}

JudgedCondition summary_of(const Trial& trial) {
  JudgedCondition judged;
  judged.name = trial.condition == nullptr ? "" : trial.condition->name;
  judged.holds = trial.holds();
  judged.draws = static_cast<std::uint32_t>(trial.drawn.size());
  judged.stated = trial.stated[trial.in_question()];
  std::vector<double> values = drawn_values(trial, trial.in_question());
  std::sort(values.begin(), values.end());
  judged.low = quantile(values, 0.1);
  judged.high = quantile(values, 0.9);
  return judged;
}

// Ranks, so that no single draw decides.
double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const auto ranks = [](const std::vector<double>& values) {
    std::vector<double> result;
    result.reserve(values.size());
    for (const double value : values)
      result.push_back(static_cast<double>(std::count_if(
          values.begin(), values.end(), [&](double other) { return other < value; })));
    return result;
  };
  const std::vector<double> a = ranks(x), b = ranks(y);
  const double n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double both = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean_a) * (b[i] - mean_b);
    square_a += (a[i] - mean_a) * (a[i] - mean_a);
    square_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return square_a > 0 && square_b > 0 ? both / std::sqrt(square_a * square_b) : 0;
}

// Constants of the claim's scenarios whose places in their ranges go with the quantity.
std::vector<NamedConstant> suspects(const Trial& trial, const JudgementOptions& options) {
  std::map<std::string, NamedConstant> constants;
  for (const ClaimScenario& scenario : trial.claim->scenarios)
    for (const NamedConstant& c :
         load_scenario(options.data, scenario.source, scenario.settings).constants)
      if (c.low < c.high) constants.emplace(c.name, c);
  const std::vector<double> values = drawn_values(trial, trial.in_question());
  std::vector<std::pair<double, std::string>> telling;
  for (const auto& [name, constant] : constants) {
    std::vector<double> places;
    for (std::uint32_t i = 0; i < values.size(); ++i)
      places.push_back(quantile(draw_number(i, options.seed), name));
    telling.emplace_back(-std::abs(correlation(places, values)), name);
  }
  std::sort(telling.begin(), telling.end());
  std::vector<NamedConstant> result;
  for (std::size_t i = 0; i < std::min(most_suspects, telling.size()); ++i)
    result.push_back(constants.at(telling[i].second));
  return result;
}

// The claim with one constant at a given value in all of its scenarios that have it.
Claim with_constant(const Claim& claim, const NamedConstant& constant, double value,
                    const JudgementOptions& options) {
  Claim changed = claim;
  for (ClaimScenario& scenario : changed.scenarios) {
    const auto all = load_scenario(options.data, scenario.source, scenario.settings).constants;
    const bool has = std::any_of(all.begin(), all.end(), [&](const NamedConstant& each) {
      return each.name == constant.name;
    });
    if (has)
      scenario.settings.emplace_back(constant.name,
                                     fmt::format("{} {}", value, si_unit(constant.dimension)));
  }
  return changed;
}

// Of the suspects those that move the quantity most from one end of their range to the other.
std::vector<std::string> constants_that_decide(const Trial& trial, const JudgementOptions& options,
                                               ClaimPoints& points) {
  struct Ends {
    std::string name;
    Claim low, high;
  };
  const ClaimQuantity& quantity = trial.claim->assertions[trial.in_question()].quantity;
  std::vector<Ends> ends;
  for (const NamedConstant& c : suspects(trial, options))
    ends.push_back({c.name, with_constant(*trial.claim, c, c.low, options),
                    with_constant(*trial.claim, c, c.high, options)});
  const auto at = [&](const Claim& claim) {
    return value_of(claim, quantity, trial.condition, std::nullopt, points);
  };
  for (const Ends& each : ends) {
    at(each.low);
    at(each.high);
  }
  points.ask();
  const double stated = trial.stated[trial.in_question()];
  std::vector<std::pair<double, std::string>> swings;
  for (const Ends& each : ends)
    if (const double swing = std::abs(*at(each.high) - *at(each.low));
        swing > least_swing * std::abs(stated))
      swings.emplace_back(-swing, each.name);
  std::sort(swings.begin(), swings.end());
  std::vector<std::string> names;
  constexpr std::size_t most = 3;
  for (std::size_t i = 0; i < std::min(most, swings.size()); ++i) names.push_back(swings[i].second);
  return names;
}

std::string figure(double value, Dimension dimension) {
  if (!std::isfinite(value)) return "no number";
  return dimension == Dimension::ratio ? fmt::format("{:.3g}", value) : to_text(value, dimension);
}

std::string bounds_text(const Assertion& a) {
  if (a.low && a.high)
    return fmt::format("{} to {}", figure(*a.low, a.dimension), figure(*a.high, a.dimension));
  return a.low ? "at least " + figure(*a.low, a.dimension)
               : "at most " + figure(*a.high, a.dimension);
}

std::string value_text(const Trial& trial, const JudgedCondition& judged) {
  const Assertion& assertion = trial.claim->assertions[trial.in_question()];
  return fmt::format("{} is {} ({} to {} in 8 of 10 draws; claimed: {})", assertion.quantity.text,
                     figure(judged.stated, assertion.dimension),
                     figure(judged.low, assertion.dimension),
                     figure(judged.high, assertion.dimension), bounds_text(assertion));
}

// Which resource each scenario of the quantity is bound by: the one that the metric is about.
std::string resources_text(const Trial& trial, ClaimPoints& points) {
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
                                : memory ? "device memory, most of it " + facts->largest
                                         : "bound by " + facts->bound_by));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

JudgedClaim conclude(const std::vector<const Trial*>& trials, const JudgementOptions& options,
                     ClaimPoints& points) {
  const Trial& base = *trials.front();
  JudgedClaim judged{.id = base.claim->id, .text = base.claim->text};
  std::vector<std::string> flips, open;
  for (const Trial* trial : trials) {
    judged.conditions.push_back(summary_of(*trial));
    if (trial == &base) continue;
    if (trial->answer() == Answer::unsure) open.push_back(trial->condition->name);
    if (trial->answer() != Answer::unsure && trial->answer() != base.answer())
      flips.push_back(trial->condition->name);
  }
  judged.probability = base.probability();
  judged.verdict = base.answer() == Answer::unsure  ? Verdict::undecided
                   : !flips.empty()                 ? Verdict::depends
                   : base.answer() == Answer::holds ? Verdict::supported
                                                    : Verdict::refuted;
  judged.reason = value_text(base, judged.conditions.front());
  if (judged.verdict == Verdict::depends)
    judged.reason += fmt::format("; it {} {}", base.answer() == Answer::holds ? "fails" : "holds",
                                 fmt::join(flips, ", "));
  if (!open.empty()) judged.reason += fmt::format("; open {}", fmt::join(open, ", "));
  if (judged.verdict == Verdict::undecided) {
    judged.to_measure = constants_that_decide(base, options, points);
    judged.reason += judged.to_measure.empty()
                         ? "; no single constant decides it"
                         : fmt::format("; to measure: {}", fmt::join(judged.to_measure, ", "));
  }
  judged.reason += "; " + resources_text(base, points);
  return judged;
}

}  // namespace

std::string_view to_text(Verdict verdict) {
  constexpr std::array<std::string_view, 4> names{"supported", "refuted", "depends", "undecided"};
  return names[static_cast<std::size_t>(verdict)];
}

std::vector<JudgedClaim> judge(std::span<const Claim> claims, const JudgementOptions& options) {
  ClaimPoints points(options.data, options.workers, options.progress);
  std::vector<Trial> trials;
  for (const Claim& claim : claims) {
    if (!claim.missing.empty()) continue;
    trials.push_back({&claim, nullptr, {}, {}});
    for (const Condition& condition : claim.conditions)
      trials.push_back({&claim, &condition, {}, {}});
  }
  play(trials, options, points);
  std::vector<JudgedClaim> judged;
  for (const Claim& claim : claims) {
    if (!claim.missing.empty()) {
      judged.push_back({.id = claim.id, .text = claim.text});
      judged.back().reason = "not modelled: " + claim.missing;
      continue;
    }
    std::vector<const Trial*> own;
    for (const Trial& trial : trials)
      if (trial.claim == &claim) own.push_back(&trial);
    judged.push_back(conclude(own, options, points));
  }
  return judged;
}

}  // namespace stepsim
