#include "analysis/studies/fidelity/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "analysis/studies/fidelity/robust_fit.hpp"
#include "analysis/studies/fidelity/stretch_fit.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/quantile.hpp"

namespace stepsim {
namespace {

constexpr int rounds = 3;           // of linearising and solving
constexpr double nudge = 0.05;      // of a constant, as a logarithm, for a slope
constexpr double weak_slope = 0.1;  // below it a row says nothing about a constant

std::vector<Setting> settings_of(const std::vector<NamedConstant>& constants,
                                 const std::vector<double>& values) {
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < constants.size(); ++i)
    settings.emplace_back(constants[i].name,
                          fmt::format("{{value: {:.12g} {}, grade: fitted, source: a trial}}",
                                      values[i], si_unit(constants[i].dimension)));
  return settings;
}

struct CalibrationTrial {
  const Catalogue& data;
  const CalibrationPlan& plan;
  std::vector<StepRow> rows;
  std::vector<NamedConstant> constants;
  std::vector<double> weights;  // [row]: rows of one scenario share one

  std::vector<PredictedRow> predict(const std::vector<double>& values,
                                    std::uint32_t samples = 0) const {
    std::vector<Setting> stack = settings_of(constants, values);
    if (samples > 0)
      stack.emplace_back("unexplained",
                         "{value: 1, low: 1, high: 1, grade: fitted, source: a trial}");
    std::vector<PredictedRow> predicted =
        predict_rows({.data = data, .rows = rows, .samples = samples, .seed = 1, .stack = stack});
    // A fit to what is left would look as good as one to all rows.
    for (const PredictedRow& row : predicted)
      if (!row.crashes.empty())
        throw std::runtime_error(fmt::format("{}: {}", row.id, row.crashes.front()));
    return predicted;
  }
};

RobustFit linearised(const CalibrationTrial& problem, const std::vector<double>& at,
                     const std::vector<PredictedRow>& here) {
  RobustFit fit;
  fit.turn = problem.plan.turn;
  fit.prior = problem.plan.prior;
  for (std::size_t row = 0; row < here.size(); ++row)
    fit.rows.push_back({std::log1p(here[row].step_error), problem.weights[row], {}});
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::vector<double> step(at.size(), 0.0);
    step[i] = at[i] * std::exp(nudge) > problem.plan.free[i].high ? -nudge : nudge;
    const std::vector<PredictedRow> there = problem.predict(moved(at, step));
    for (std::size_t row = 0; row < here.size(); ++row)
      fit.rows[row].slopes.push_back(
          (std::log1p(there[row].step_error) - std::log1p(here[row].step_error)) / step[i]);
    fit.low.push_back(std::log(problem.plan.free[i].low / at[i]));
    fit.high.push_back(std::log(problem.plan.free[i].high / at[i]));
  }
  return fit;
}

// Takes the rows of this stack that have a time, as others say nothing; rows of one scenario count
// as one.
CalibrationTrial trial_of(const Catalogue& data, const CalibrationPlan& plan) {
  CalibrationTrial problem{data, plan, {}, {}, {}};
  std::map<std::string, std::vector<std::size_t>> same;
  for (const std::string& table : plan.tables)
    for (StepRow& row : step_rows(data, read_csv(data.file(table)))) {
      if (!row.missing.empty() || !holds(plan.stacks, row.stack)) continue;
      same[row.run].push_back(problem.rows.size());
      problem.rows.push_back(std::move(row));
    }
  problem.weights.assign(problem.rows.size(), 0);
  for (const auto& [scenario, members] : same)
    for (const std::size_t row : members)
      problem.weights[row] = 1.0 / static_cast<double>(members.size());
  if (plan.free.empty()) return problem;
  const std::string& name = plan.stacks.front();
  const Document stack = open_entry(data, stack_shelf, name);
  read_stack(stack.root());
  const Document operators = read_document(data.file("workloads/operators.yaml"));
  read_operators(operators.root());
  std::vector<NamedConstant> all = stack.constants();
  for (NamedConstant constant : operators.constants()) {
    constant.name = "operators." + constant.name;
    all.push_back(std::move(constant));
  }
  for (const FreeConstant& free : plan.free) {
    const auto place = std::ranges::find(all, free.name, &NamedConstant::name);
    if (place == all.end())
      throw UserError(fmt::format("{} has no constant \"{}\"", name, free.name));
    problem.constants.push_back(*place);
  }
  return problem;
}

// Rows without a time, and those that were refused, weigh nothing.
void drop_untimed(CalibrationTrial& problem, std::vector<PredictedRow>& rows) {
  for (std::size_t i = rows.size(); i-- > 0;) {
    if (rows[i].timed && rows[i].predicted()) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    problem.rows.erase(problem.rows.begin() + at);
    problem.weights.erase(problem.weights.begin() + at);
    rows.erase(rows.begin() + at);
  }
}

// Returns where a row by itself would put a constant; between these ends lie eight of ten rows.
Range spread_of(const RobustFit& fit, std::size_t constant, double value,
                const FreeConstant& bounds) {
  std::vector<double> wanted{value};
  for (const RobustFit::Row& row : fit.rows)
    if (std::abs(row.slopes[constant]) > weak_slope)
      wanted.push_back(std::clamp(value * std::exp(-row.residual / row.slopes[constant]),
                                  bounds.low, bounds.high));
  std::ranges::sort(wanted);
  return {std::min(value, quantile(wanted, 0.1)), std::max(value, quantile(wanted, 0.9))};
}

// Returns the range of `unexplained`, and puts into `rows` the intervals that come of it.
Range stretch_of(const CalibrationTrial& problem, std::vector<PredictedRow>& rows) {
  std::vector<StretchRow> weighed;
  for (std::size_t i = 0; i < rows.size(); ++i) weighed.push_back({&rows[i], problem.weights[i]});
  const Range stretch = fit_stretch(weighed);
  for (PredictedRow& row : rows) row.interval = stretched_interval(row, stretch);
  return stretch;
}

// The linearised problem without one family gives the constants; that family is then predicted
// with them in full.
std::vector<HeldOutFamily> leave_out(const CalibrationTrial& problem, const RobustFit& fit,
                                     const std::vector<double>& values,
                                     const std::vector<PredictedRow>& rows) {
  std::vector<HeldOutFamily> result;
  std::vector<RowFamily> families = families_of(rows);
  families.pop_back();
  if (families.size() < 2) return result;
  for (const RowFamily& family : families) {
    RobustFit others = fit;
    for (std::size_t row = 0; row < rows.size(); ++row)
      if (rows[row].family == family.name) others.rows[row].weight = 0;
    const std::vector<PredictedRow> without = problem.predict(moved(values, solve(others)));
    for (const RowFamily& each : families_of(without))
      if (each.name == family.name) result.push_back({family.name, family.median, each.median});
  }
  return result;
}

}  // namespace

Calibration calibrate(const Catalogue& data, const CalibrationPlan& plan, std::uint32_t samples) {
  CalibrationTrial problem = trial_of(data, plan);
  Calibration result;
  std::vector<double> values;
  for (std::size_t i = 0; i < plan.free.size(); ++i) {
    const NamedConstant& constant = problem.constants[i];
    values.push_back(std::clamp(constant.value, plan.free[i].low, plan.free[i].high));
    result.constants.push_back({constant.name, constant.dimension, constant.value, 0, 0, 0});
  }
  std::vector<PredictedRow> here = problem.predict(values);
  drop_untimed(problem, here);
  if (here.empty())
    throw UserError(fmt::format("no row is predicted with {}", fmt::join(plan.stacks, ", ")));
  result.before = families_of(here);
  for (int round = 0; round < rounds && !values.empty(); ++round) {
    values = moved(values, solve(linearised(problem, values, here)));
    here = problem.predict(values);
  }
  const RobustFit fit = linearised(problem, values, here);
  if (!values.empty()) result.held_out = leave_out(problem, fit, values, here);
  if (samples > 0) {
    here = problem.predict(values, samples);
    result.unexplained = stretch_of(problem, here);
    result.samples = samples;
  }
  result.after = families_of(here);
  result.rows = here.size();
  double runs = 0;
  for (const double weight : problem.weights) runs += weight;
  result.runs = static_cast<std::size_t>(std::lround(runs));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Range spread = spread_of(fit, i, values[i], plan.free[i]);
    result.constants[i].value = values[i];
    result.constants[i].low = spread.low;
    result.constants[i].high = spread.high;
  }
  return result;
}

}  // namespace stepsim
