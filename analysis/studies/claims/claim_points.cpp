#include "analysis/studies/claims/claim_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

std::string key_of(const ClaimPoint& point) {
  std::string key = point.source;
  for (const auto& [name, value] : point.settings) key += fmt::format("\n{}={}", name, value);
  key += fmt::format("\n{}", point.free.bits());
  if (point.draw)
    key += fmt::format("\n{} {} {}", point.draw->seed, point.draw->sample, point.draw->of);
  return key;
}

ClaimPoint point_of(const Claim& claim, std::size_t scenario, const Condition* condition,
                    const std::optional<Draw>& draw) {
  const ClaimScenario& own = claim.scenarios[scenario];
  ClaimPoint point{own.source, own.settings, {}, draw};
  if (condition != nullptr)
    for (const auto& [changed, settings] : condition->changes)
      if (changed == scenario)
        point.settings.insert(point.settings.end(), settings.begin(), settings.end());
  return point;
}

double metric_in(const Claim& claim, const MetricOf& metric, const PointFacts& facts) {
  if (const auto value = facts.of(metric.metric)) return *value;
  if (metric.metric.starts_with("memory.")) return 0;  // nothing of that class at the peak
  throw UserError(fmt::format("claim {}: {} says nothing about {}", claim.id,
                              claim.scenarios[metric.scenario].alias, metric.metric));
}

// Returns the slope of the least squares line through the logarithms.
double exponent_through(const std::vector<double>& x, const std::vector<double>& y) {
  double mean_x = 0, mean_y = 0, both = 0, square = 0;
  const double n = static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += std::log(x[i]) / n;
    mean_y += std::log(y[i]) / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    both += (std::log(x[i]) - mean_x) * (std::log(y[i]) - mean_y);
    square += (std::log(x[i]) - mean_x) * (std::log(x[i]) - mean_x);
  }
  return both / square;
}

double combine(const ClaimQuantity& quantity, const std::vector<double>& y,
               const std::vector<double>& x) {
  using Kind = ClaimQuantity::Kind;
  switch (quantity.kind) {
    case Kind::value:
      return y[0];
    case Kind::ratio:
      return y[0] / y[1];
    case Kind::closes:  // x: the same steps with the causes free
      return 1 - (x[0] - x[1]) / (y[0] - y[1]);
    case Kind::exponent:
      return exponent_through(x, y);
    case Kind::change:
      return y.back() / y.front();
    case Kind::rises: {
      double least = y[1] / y[0];
      for (std::size_t i = 2; i < y.size(); ++i) least = std::min(least, y[i] / y[i - 1]);
      return least;
    }
  }
  return 0;
}

PointFacts answer_to(const Catalogue& data, const ClaimPoint& point) {
  const AllowedScenario found = allowed_scenario(data, point.source, point.settings, point.draw);
  if (!found.scenario) return {{{"fits", 0}}, found.rule, found.rule};
  const Scenario& scenario = *found.scenario;
  if (scenario.grpo) return facts_of(scenario, predict_grpo(scenario));
  return facts_of(scenario, predict(scenario, Kept::run, {.free = point.free}));
}

}  // namespace

AllowedScenario allowed_scenario(const Catalogue& data, const std::string& source,
                                 std::span<const Setting> settings, const MaybeDraw& draw) {
  try {
    return {load_scenario(data, source, settings, draw), ""};
  } catch (const UserError& error) {
    const auto rule = [](const Problem& problem) {
      return problem.fault == Fault::rule && problem.key.starts_with("job");
    };
    if (!std::ranges::all_of(error.problems(), rule)) throw;
    return {std::nullopt, error.problems().front().message};
  }
}

const PointFacts* ClaimPoints::find(const ClaimPoint& point) {
  const std::string key = key_of(point);
  if (const auto place = known_.find(key); place != known_.end()) return &place->second;
  wanted_.emplace(key, point);
  return nullptr;
}

void ClaimPoints::ask() {
  Tasks<PointFacts> tasks;
  tasks.reserve(wanted_.size());
  for (const auto& entry : wanted_)
    tasks.emplace_back([this, point = &entry.second] { return answer_to(data_, *point); });
  std::vector<PointFacts> answers = in_workers(tasks, workers_, progress_);
  std::size_t next = 0;
  for (const auto& entry : wanted_) known_[entry.first] = std::move(answers[next++]);
  wanted_.clear();
}

std::optional<double> value_of(const Claim& claim, const ClaimQuantity& quantity,
                               const Condition* condition, const std::optional<Draw>& draw,
                               ClaimPoints& points) {
  bool complete = true;
  std::vector<double> x = quantity.along, y;
  const auto ask = [&](const MetricOf& metric, CauseSet free, std::vector<double>& values) {
    ClaimPoint point = point_of(claim, metric.scenario, condition, draw);
    point.free = free;
    if (const PointFacts* facts = points.find(point))
      values.push_back(metric_in(claim, metric, *facts));
    else
      complete = false;
  };
  for (const MetricOf& metric : quantity.metrics) ask(metric, {}, y);
  for (const MetricOf& metric : quantity.against) ask(metric, {}, x);
  if (quantity.kind == ClaimQuantity::Kind::closes)
    for (const MetricOf& metric : quantity.metrics) ask(metric, quantity.free, x);
  if (!complete) return std::nullopt;
  return combine(quantity, y, x);
}

const PointFacts* facts_of(const Claim& claim, std::size_t scenario, const Condition* condition,
                           ClaimPoints& points) {
  return points.find(point_of(claim, scenario, condition, std::nullopt));
}

}  // namespace stepsim
