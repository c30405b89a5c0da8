#include "analysis/studies/explain/explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "analysis/studies/explain/explain_draws.hpp"
#include "analysis/studies/explain/explained_side.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// Rows whose error is below this share of the gap, or that share of a step, are known well enough.
constexpr double precise_of_gap = 2e-3, precise_of_step = 1e-4;
// Steps of up to so many operations are replayed quickly.
constexpr std::size_t few_operations = 30000;

void compare(Fairness& fairness, std::string_view what, const std::string& a,
             const std::string& b) {
  if (a == b)
    fairness.equal.push_back(fmt::format("{}: {}", what, a));
  else
    fairness.unequal.push_back(fmt::format("{}: {} in A, {} in B", what, a, b));
}

std::string share_of_memory(const ExplainedSide& side) {
  return fmt::format("{} of {} usable ({:.0f} %)", to_text(Bytes{side.needed}),
                     to_text(Bytes{side.capacity}), 100 * side.needed / side.capacity);
}

// Writes 1,234,567.
std::string whole(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
  return digits;
}

Fairness fairness_of(const Explanation& e) {
  Fairness fairness;
  compare(fairness, "sequences of a step", whole(e.a.sequences), whole(e.b.sequences));
  compare(fairness, "tokens of a step", whole(e.a.tokens), whole(e.b.tokens));
  compare(fairness, "GPUs", fmt::format("{}", e.a.gpus), fmt::format("{}", e.b.gpus));
  for (const ExplainedSide* side : {&e.a, &e.b})
    if (side->fit == Fit::oom)
      fairness.too_large.push_back(fmt::format("{} does not fit into memory: {}",
                                               side == &e.a ? "A" : "B", share_of_memory(*side)));
  compare(fairness, "memory", share_of_memory(e.a), share_of_memory(e.b));
  return fairness;
}

ByCause<std::vector<Carrier>> carriers_in(const NamedStep& step, const ExplainOptions& options) {
  if (!options.carriers || step.scenario.grpo) return {};
  return carriers_of(options.data, step.source, step.settings);
}

double rate_with(const Scenario& scenario, std::int64_t micro_batch) {
  if (micro_batch == 0) return 0;
  Scenario changed = scenario;
  changed.job.micro_batch = micro_batch;
  return in_worker([&] { return predict(changed, Kept::figures).tokens_per_second_per_gpu; });
}

AtLimit at_limit_of(const Explanation& e, const Scenario& a, const Scenario& b) {
  AtLimit limit{largest_micro_batch(a, tight_from), largest_micro_batch(b, tight_from), 0, 0,
                false};
  limit.rate_a = rate_with(a, limit.micro_batch_a);
  limit.rate_b = rate_with(b, limit.micro_batch_b);
  const double here = e.a.tokens_per_second_per_gpu - e.b.tokens_per_second_per_gpu;
  limit.flips = (limit.rate_a - limit.rate_b) * here < 0;
  return limit;
}

// Long steps have at most this many mixtures replayed, short ones as many as there are of eight
// settings.
constexpr std::size_t replays_of_long_steps = 64;
// This many settings are tried out to the end, which carry this share of the gap each.
constexpr std::size_t most_changed = 3;
constexpr double worth_trying = 0.02;
// A cause that makes up this share of what a setting changes says where.
constexpr double tells_cause = 0.4;

// One whose engines cannot start takes no time; it counts as A, and what follows it moves the gap.
Seconds time_or(const Scenario& scenario, Seconds otherwise) {
  const Seconds time = step_time_of(scenario);
  return time.value > 0 ? time : otherwise;
}

ScenarioSource source_of(const NamedStep& step) {
  return {step.source, step.settings, step.scenario};
}

std::optional<Cause> most_changed_cause(const ExplainedSide& from, const ExplainedSide& to) {
  const double sign = from.step_time < to.step_time ? -1 : 1;
  std::optional<Cause> most;
  double largest = 0;
  for (std::size_t i = 0; i < cause_count; ++i) {
    const double change = sign * (from.causes[i].exposed - to.causes[i].exposed).value;
    if (change <= largest) continue;
    largest = change;
    most = static_cast<Cause>(i);
  }
  // A rank that waits for a slower one has no cause of its own that says so.
  if (largest < tells_cause * std::abs((from.step_time - to.step_time).value)) return std::nullopt;
  return most;
}

// Returns what A comes to with one setting as in B; nothing where it cannot run.
std::optional<ChangedStep> changed_step(const NamedStep& a, const ExplainedSide& before,
                                        const std::vector<DifferingSetting>& settings,
                                        const SettingRow& row, const ExplainOptions& options) {
  NamedStep changed = a;
  changed.scenario = mixture(options.data, source_of(a), settings, row.joined);
  try {
    const ExplainedSide side = observe(changed).side;
    return ChangedStep{side.step_time, side.needed, side.fit, most_changed_cause(before, side)};
  } catch (const UserError&) {
    return std::nullopt;
  }
}

SettingRows settings_between(const Explanation& e, const NamedStep& a, const NamedStep& b,
                             Seconds precise, const ExplainOptions& options) {
  const std::vector<DifferingSetting> settings =
      differing_settings(options.data, source_of(a), source_of(b));
  const bool is_long = a.scenario.grpo || std::max(e.a.operations, e.b.operations) > few_operations;
  SettingOptions study = options.replays;
  if (is_long) study.most_replays = std::min(study.most_replays, replays_of_long_steps);
  study.precise = precise;
  const auto replayed = [&](const Joined& joined) {
    return time_or(mixture(options.data, source_of(a), settings, joined), e.a.step_time);
  };
  SettingRows rows = setting_rows(settings, e.a.step_time, e.b.step_time, replayed, study);
  for (std::size_t i = 0; i < std::min(most_changed, rows.rows.size()); ++i)
    if (std::abs(rows.rows[i].seconds.value) >= worth_trying * std::abs(e.gap().value))
      rows.rows[i].changed = changed_step(a, e.a, settings, rows.rows[i], options);
  return rows;
}

}  // namespace

std::string_view name_of(const ExplainRow& row) {
  return row.cause ? to_text(*row.cause) : "idle";
}

std::vector<ExplainRow> gap_rows(const ExplainedSide& a, const ExplainedSide& b) {
  const double longer = std::max(a.step_time, b.step_time).value;
  std::vector<ExplainRow> rows;
  const auto add = [&](ExplainRow row) {
    row.seconds = row.a.exposed - row.b.exposed;
    if (std::abs(row.seconds.value) < counts_as_rounding * longer) row.seconds = {};
    if (row.in_a() || row.in_b()) rows.push_back(std::move(row));
  };
  for (std::size_t i = 0; i < cause_count; ++i)
    add({.cause = static_cast<Cause>(i),
         .a = a.causes[i],
         .b = b.causes[i],
         .seconds = {},
         .a_without = a.without[i],
         .b_without = b.without[i],
         .range = {},
         .carriers = {}});
  add({.cause = {},
       .a = {a.idle, {}},
       .b = {b.idle, {}},
       .seconds = {},
       .a_without = a.step_time,
       .b_without = b.step_time,
       .range = {},
       .carriers = {}});
  const double sign = a.step_time < b.step_time ? -1 : 1;
  std::ranges::stable_sort(rows, [&](const ExplainRow& x, const ExplainRow& y) {
    return sign * x.seconds.value > sign * y.seconds.value;
  });
  return rows;
}

std::string size_of(Seconds seconds) {
  return to_text(Seconds{std::abs(seconds.value)});
}

std::uint32_t usual_draws(const Explanation& e, const Scenario& a, const Scenario& b) {
  if (a.grpo || b.grpo) return 0;
  return std::max(e.a.operations, e.b.operations) <= few_operations ? 3 * draws_at_once
                                                                    : draws_at_once;
}

Explanation explain(const NamedStep& a, const NamedStep& b, const ExplainOptions& options) {
  Explanation result;
  const ExplainedStep of_a = observe(a, options.player), of_b = observe(b, options.player);
  result.a = of_a.side;
  result.b = of_b.side;
  const double longer = std::max(result.a.step_time, result.b.step_time).value;
  for (auto [side, step] : {std::pair{&result.a, &a}, std::pair{&result.b, &b}})
    side->without = times_without(step->scenario, *side, options.replays);
  result.rows = gap_rows(result.a, result.b);
  const std::size_t parting = first_difference(of_a.parts, of_b.parts, {counts_as_same * longer});
  if (parting < std::min(of_a.parts.size(), of_b.parts.size()))
    result.parting = {of_a.parts[parting], of_b.parts[parting]};
  result.fairness = fairness_of(result);
  const ByCause<std::vector<Carrier>> carriers_a = carriers_in(a, options);
  const ByCause<std::vector<Carrier>> carriers_b = carriers_in(b, options);
  for (ExplainRow& row : result.rows)
    if (row.cause)
      row.carriers = (row.seconds.value >= 0 ? carriers_a : carriers_b)[index(*row.cause)];
  if (options.settings) {
    const double precise =
        std::max(precise_of_gap * std::abs(result.gap().value), precise_of_step * longer);
    result.settings = settings_between(result, a, b, {precise}, options);
  }
  if (options.at_limit) result.at_limit = at_limit_of(result, a.scenario, b.scenario);
  add_draws(result, a, b, options, carriers_a, carriers_b);
  return result;
}

std::string draws_text(const Explanation& e) {
  const GapDraws& draws = *e.draws;
  const auto of_all = [&](std::uint32_t count) {
    return count == draws.draws ? fmt::format("all of {}", draws.draws)
                                : fmt::format("{} of {}", count, draws.draws);
  };
  if (e.gap().value == 0)
    return fmt::format("A is slower in {} and B in {} draws of the constants", draws.a_slower,
                       draws.b_slower);
  const bool a_slower = e.gap().value > 0;
  std::string text = fmt::format("{} is slower in {} draws of the constants", a_slower ? "A" : "B",
                                 of_all(a_slower ? draws.a_slower : draws.b_slower));
  if (!e.rows.empty())
    text += fmt::format(", and {} is the largest row in {}", name_of(e.rows.front()),
                        of_all(draws.same_top));
  if (draws.draws < draws.most)
    text += fmt::format(" (up to {} would have been made, were it less clear)", draws.most);
  return text;
}

std::string counterfactual_text(const Explanation& e, const ExplainRow& row) {
  if (!row.cause) return "";
  std::vector<std::string> sides;
  for (const auto& [name, side, without] :
       {std::tuple{"A", &e.a, row.a_without}, std::tuple{"B", &e.b, row.b_without}}) {
    const Seconds saved = side->step_time - without;
    if (std::abs(saved.value) < counts_as_same * side->step_time.value) continue;
    const std::string now = to_text(side->step_time), then = to_text(without);
    sides.push_back(now == then ? fmt::format("{} would take {} less", name, to_text(saved))
                                : fmt::format("{} would take {} instead of {}", name, then, now));
  }
  if (sides.empty())
    return fmt::format("with free {} alone neither step changes by a thousandth", name_of(row));
  const std::string text = fmt::format("with free {} {}", name_of(row), fmt::join(sides, " and "));
  const Seconds then = row.a_without - row.b_without;
  const std::string now = size_of(e.gap()), left = size_of(then);
  if (now == left) return text + ": the gap hardly changes";
  if (then.value * e.gap().value < 0)
    return text +
           fmt::format(": the order reverses, {} would be faster", then.value < 0 ? "A" : "B");
  return text + fmt::format(": the gap would be {} instead of {}", left, now);
}

std::string at_limit_text(const Explanation& e) {
  if (!e.at_limit) return "";
  const AtLimit& limit = *e.at_limit;
  const auto side = [](std::string_view name, std::int64_t micro_batch, double rate) {
    if (micro_batch == 0) return fmt::format("{} fits with no micro-batch", name);
    return fmt::format("{} {:.0f} tok/s/GPU with a micro-batch of {}", name, rate, micro_batch);
  };
  const std::string rates = side("A", limit.micro_batch_a, limit.rate_a) + ", " +
                            side("B", limit.micro_batch_b, limit.rate_b);
  const std::string_view there = limit.rate_a > limit.rate_b ? "A" : "B";
  if (limit.flips)
    return fmt::format("as they stand {} wins, but at each one's memory limit {} does: {}",
                       there == "A" ? "B" : "A", there, rates);
  return fmt::format("at each one's memory limit {} wins, too: {}", there, rates);
}

}  // namespace stepsim
