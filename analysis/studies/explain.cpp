#include "analysis/studies/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>

#include "analysis/breakdown.hpp"
#include "analysis/studies/prediction.hpp"
#include "workloads/step.hpp"

namespace stepsim {
namespace {

// Parts of a step that differ by less than this share of it do not count as different.
constexpr double alike = 1e-3;
// Below this share of a step a difference is rounding.
constexpr double rounding = 1e-13;

// What a worker saw in one full replay, as numbers in a row.
std::string observe(const Scenario& scenario) {
  const Prediction p = predict(scenario, Folding::automatic);
  ByCause<CauseTime> causes{};
  for (const BreakdownRow& row : p.breakdown.rows)
    causes[index(row.cause)] = {row.exposed, row.hidden};
  std::string text = fmt::format(
      "{} {} {} {} {} {}", p.tokens_per_second_per_gpu, p.memory.needed(), p.memory.capacity,
      static_cast<int>(p.memory.fit()), p.run.graph.size(), p.breakdown.idle.value);
  for (const CauseTime& each : causes)
    text += fmt::format(" {} {}", each.exposed.value, each.hidden.value);
  const auto parts = path_parts(p.run.graph, p.run.trace, scenario.model.layers);
  text += fmt::format(" {}", parts.size());
  for (const PathPart& part : parts) {
    text += fmt::format(" {} {} {} {} {}", static_cast<int>(part.pass), part.first_layer,
                        part.first_micro_batch, part.seconds.value, part.causes.size());
    for (const auto& [cause, seconds] : part.causes)
      text += fmt::format(" {} {}", static_cast<int>(cause), seconds.value);
  }
  return text;
}

template <class Enum>
Enum read_enum(std::istream& words) {
  int number = 0;
  words >> number;
  return static_cast<Enum>(number);
}

// The side's own figures; returns its path, layer by layer.
std::vector<PathPart> read_observation(const std::string& text, ExplainedSide& side) {
  std::istringstream words(text);
  words >> side.tokens_per_second_per_gpu >> side.needed >> side.capacity;
  side.fit = read_enum<Fit>(words);
  words >> side.operations >> side.idle.value;
  for (CauseTime& each : side.causes) words >> each.exposed.value >> each.hidden.value;
  std::size_t count = 0;
  words >> count;
  std::vector<PathPart> parts(count);
  for (PathPart& part : parts) {
    part.pass = read_enum<Phase>(words);
    words >> part.first_layer >> part.first_micro_batch >> part.seconds.value >> count;
    part.last_layer = part.first_layer;
    part.last_micro_batch = part.first_micro_batch;
    part.causes.resize(count);
    for (auto& [cause, seconds] : part.causes) {
      cause = read_enum<Cause>(words);
      words >> seconds.value;
    }
  }
  return parts;
}

ExplainedSide describe(const NamedStep& step) {
  const Job& job = step.scenario.job;
  ExplainedSide side;
  side.label = step.label;
  side.title = step.scenario.name;
  side.gpus = step.scenario.cluster.ranks();
  side.sequences = static_cast<double>(job.rows() * job.accumulation) * side.gpus;
  side.tokens = side.sequences * static_cast<double>(job.sequence) * job.fill;
  return side;
}

struct ExplainedStep {
  ExplainedSide side;
  std::vector<PathPart> parts;
};

ExplainedStep play(const NamedStep& step, const AttributionOptions& options) {
  ExplainedStep result{describe(step), {}};
  const std::string seen = in_worker([&] { return observe(step.scenario); });
  result.parts = read_observation(seen, result.side);
  result.side.path = folded(result.parts);
  const Scenario& s = step.scenario;
  const StepProgram program =
      build_step({s.cluster, s.model, s.stack, s.strategy, s.job}, Folding::automatic);
  result.side.attribution = attribute(program.traffic.folded.platform, program.graph, options);
  result.side.step_time = result.side.attribution.step_time;
  return result;
}

void note_unequal(std::vector<std::string>& notes, std::string_view what, const std::string& a,
                  const std::string& b) {
  if (a != b) notes.push_back(fmt::format("{}: {} in A, {} in B", what, a, b));
}

std::string share_of_memory(const ExplainedSide& side) {
  return fmt::format("{} of {} usable ({:.0f} %)", to_text(Bytes{side.needed}),
                     to_text(Bytes{side.capacity}), 100 * side.needed / side.capacity);
}

std::vector<std::string> fairness_of(const Explanation& e) {
  std::vector<std::string> notes;
  note_unequal(notes, "sequences of a step", fmt::format("{:.10g}", e.a.sequences),
               fmt::format("{:.10g}", e.b.sequences));
  note_unequal(notes, "tokens of a step", fmt::format("{:.4g}", e.a.tokens),
               fmt::format("{:.4g}", e.b.tokens));
  note_unequal(notes, "GPUs", fmt::format("{}", e.a.gpus), fmt::format("{}", e.b.gpus));
  for (const ExplainedSide* side : {&e.a, &e.b})
    if (side->fit == Fit::oom)
      notes.push_back(fmt::format("{} does not fit into memory: {}", side == &e.a ? "A" : "B",
                                  share_of_memory(*side)));
  note_unequal(notes, "memory", share_of_memory(e.a), share_of_memory(e.b));
  return notes;
}

bool weighs_on_a(const Explanation& e, const ExplainRow& row) {
  return e.a.step_time - row.a_without >= e.b.step_time - row.b_without;
}

void add_carriers(Explanation& e, const NamedStep& a, const NamedStep& b, const std::string& data) {
  const auto of_a = carriers_of(data, a.source, a.settings);
  const auto of_b = carriers_of(data, b.source, b.settings);
  for (ExplainRow& row : e.rows)
    row.carriers = (weighs_on_a(e, row) ? of_a : of_b)[index(row.cause)];
}

// Largest micro-batch that fits: memory grows with it.
std::int64_t largest_micro_batch(const Scenario& scenario) {
  Scenario changed = scenario;
  const auto fits = [&](std::int64_t micro_batch) {
    changed.job.micro_batch = micro_batch;
    return footprint(changed).fit() != Fit::oom;
  };
  if (!fits(1)) return 0;
  std::int64_t good = 1, bad = 2;
  constexpr std::int64_t most = 1 << 16;
  while (bad < most && fits(bad)) {
    good = bad;
    bad *= 2;
  }
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

double rate_with(const Scenario& scenario, std::int64_t micro_batch) {
  if (micro_batch == 0) return 0;
  Scenario changed = scenario;
  changed.job.micro_batch = micro_batch;
  const std::string answer = in_worker([&] {
    return fmt::format("{}", predict(changed, Folding::automatic).tokens_per_second_per_gpu);
  });
  return parse_quantity(answer)->value;
}

AtLimit at_limit_of(const Explanation& e, const Scenario& a, const Scenario& b) {
  AtLimit limit{largest_micro_batch(a), largest_micro_batch(b), 0, 0, false};
  limit.rate_a = rate_with(a, limit.micro_batch_a);
  limit.rate_b = rate_with(b, limit.micro_batch_b);
  const double here = e.a.tokens_per_second_per_gpu - e.b.tokens_per_second_per_gpu;
  limit.flips = (limit.rate_a - limit.rate_b) * here < 0;
  return limit;
}

}  // namespace

std::vector<ExplainRow> gap_rows(const Attribution& a, const Attribution& b) {
  const Seconds gap = a.step_time - b.step_time;
  const double longer = std::max(a.step_time, b.step_time).value;
  std::vector<ExplainRow> rows;
  for (const Cause cause : members(a.active | b.active)) {
    const std::size_t i = index(cause);
    ExplainRow row;
    row.cause = cause;
    row.in_a = a.active.has(cause);
    row.in_b = b.active.has(cause);
    row.seconds = {a.parts[i].value - b.parts[i].value};
    if (std::abs(row.seconds.value) < rounding * longer) row.seconds = {};
    row.standard_error = {std::hypot(a.parts[i].standard_error, b.parts[i].standard_error)};
    row.a_without = a.without[i];
    row.b_without = b.without[i];
    row.closes = gap.value == 0 ? 0 : 1 - (row.a_without - row.b_without) / gap;
    rows.push_back(std::move(row));
  }
  const double sign = gap.value < 0 ? -1 : 1;
  std::stable_sort(rows.begin(), rows.end(), [&](const ExplainRow& x, const ExplainRow& y) {
    return sign * x.seconds.value > sign * y.seconds.value;
  });
  return rows;
}

Explanation explain(const NamedStep& a, const NamedStep& b, const ExplainOptions& options) {
  Explanation result;
  const ExplainedStep of_a = play(a, options.attribution), of_b = play(b, options.attribution);
  result.a = of_a.side;
  result.b = of_b.side;
  result.rows = gap_rows(result.a.attribution, result.b.attribution);
  result.residual = result.a.attribution.rest - result.b.attribution.rest;
  const Seconds longer = std::max(result.a.step_time, result.b.step_time);
  const std::size_t parting = first_difference(of_a.parts, of_b.parts, alike * longer);
  if (parting < std::min(of_a.parts.size(), of_b.parts.size()))
    result.parting = {of_a.parts[parting], of_b.parts[parting]};
  result.fairness = fairness_of(result);
  if (options.carriers) add_carriers(result, a, b, options.data);
  if (options.at_limit) result.at_limit = at_limit_of(result, a.scenario, b.scenario);
  return result;
}

std::string counterfactual_text(const Explanation& e, const ExplainRow& row) {
  std::vector<std::string> sides;
  for (const auto& [name, side, without] :
       {std::tuple{"A", &e.a, row.a_without}, std::tuple{"B", &e.b, row.b_without}})
    if (const std::string now = to_text(side->step_time), then = to_text(without); now != then)
      sides.push_back(fmt::format("{} would take {} instead of {}", name, then, now));
  if (sides.empty())
    return fmt::format("with free {} both would take the same", to_text(row.cause));
  const std::string text =
      fmt::format("with free {} {}", to_text(row.cause), fmt::join(sides, " and "));
  const double percent = std::round(100 * row.closes);
  if (e.gap().value == 0 || percent == 0) return text + ": the gap stays";
  if (percent > 100)
    return text +
           fmt::format(": the gap turns round, {} would be faster", e.gap().value > 0 ? "A" : "B");
  return text + fmt::format(": the gap {} by {:.0f} %", percent > 0 ? "closes" : "widens",
                            std::abs(percent));
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
