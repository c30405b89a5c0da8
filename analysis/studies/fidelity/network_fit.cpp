#include "analysis/studies/fidelity/network_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/studies/fidelity/robust_fit.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/quantile.hpp"

namespace stepsim {
namespace {

constexpr int network_rounds = 3;            // of linearising and solving
constexpr double network_nudge = 0.05;       // of a constant, as a logarithm, for a slope
constexpr double weak_network_slope = 0.01;  // below it a row says nothing about a constant

struct NetworkTrial {
  const Catalogue& data;
  std::span<const MeasuredCollective> rows;
  CompareOptions options;
  std::string network;
  std::vector<NamedConstant> constants;

  std::vector<ComparedRow> predict(const std::vector<double>& values) const {
    CompareOptions with = options;
    for (std::size_t i = 0; i < constants.size(); ++i)
      with.given.push_back({constants[i].name, values[i]});
    std::vector<ComparedRow> compared = compare(data, rows, with).rows;
    // Rows over another network say nothing about this one.
    std::erase_if(compared, [&](const ComparedRow& row) {
      return !row.compared() || (row.measured.nodes > 1 && !row.machine.ends_with(", " + network));
    });
    return compared;
  }
};

// A constant without a range is known; one that is nothing has no logarithm.
std::vector<NamedConstant> costs_of(const Cluster& machine) {
  std::vector<NamedConstant> costs;
  for (const NamedConstant& constant : machine.constants)
    if (constant.name.find(".collectives.") != std::string::npos && constant.low > 0 &&
        constant.low < constant.high)
      costs.push_back(constant);
  return costs;
}

RobustFit linearised(const NetworkTrial& trial, const std::vector<double>& at,
                     const std::vector<ComparedRow>& stated) {
  RobustFit fit;
  for (const ComparedRow& row : stated) fit.rows.push_back({std::log1p(row.error), 1, {}});
  for (std::size_t i = 0; i < at.size(); ++i) {
    const NamedConstant& constant = trial.constants[i];
    std::vector<double> step(at.size(), 0.0);
    step[i] = at[i] * std::exp(network_nudge) > constant.high ? -network_nudge : network_nudge;
    const std::vector<ComparedRow> nudged = trial.predict(moved(at, step));
    for (std::size_t row = 0; row < stated.size(); ++row)
      fit.rows[row].slopes.push_back(
          (std::log1p(nudged[row].error) - std::log1p(stated[row].error)) / step[i]);
    fit.low.push_back(std::log(constant.low / at[i]));
    fit.high.push_back(std::log(constant.high / at[i]));
  }
  return fit;
}

// Returns the uncertainty of an unknown, as a logarithm: what rows that stray so far leave open,
// the others held.
double uncertainty_of(const RobustFit& fit, std::size_t unknown) {
  constexpr double deviations = 1.28;  // hold eight of ten
  constexpr double of_median = 1.4826;
  std::vector<double> strays;
  double squares = 0;
  for (const RobustFit::Row& row : fit.rows) {
    strays.push_back(std::abs(row.residual));
    squares += row.slopes[unknown] * row.slopes[unknown];
  }
  std::sort(strays.begin(), strays.end());
  if (squares <= 0) return 0;
  return deviations * of_median * quantile(strays, 0.5) / std::sqrt(squares);
}

double median_error(const std::vector<ComparedRow>& rows, const std::string& source) {
  std::vector<double> errors;
  for (const ComparedRow& row : rows)
    if (row.measured.source == source) errors.push_back(std::abs(row.error));
  std::ranges::sort(errors);
  return quantile(errors, 0.5);
}

std::vector<FittedSource> sources_of(const NetworkTrial& trial, const RobustFit& fit,
                                     const std::vector<double>& values,
                                     const std::vector<ComparedRow>& stated,
                                     const std::vector<ComparedRow>& fitted) {
  std::vector<FittedSource> sources;
  for (const ComparedRow& row : stated) {
    const std::string& name = row.measured.source;
    const auto place = std::ranges::find(sources, name, &FittedSource::name);
    if (place != sources.end())
      place->rows += 1;
    else
      sources.push_back({name, 1, median_error(stated, name), median_error(fitted, name)});
  }
  for (FittedSource& source : sources) {
    if (sources.size() < 2) break;
    RobustFit others = fit;
    for (std::size_t row = 0; row < stated.size(); ++row)
      if (stated[row].measured.source == source.name) others.rows[row].weight = 0;
    source.held_out = median_error(trial.predict(moved(values, solve(others))), source.name);
  }
  return sources;
}

}  // namespace

NetworkFit fit_network(const Catalogue& data, const Cluster& machine,
                       std::span<const MeasuredCollective> rows, const CompareOptions& options) {
  const std::string network = machine.network ? machine.network->name : "";
  const NetworkTrial trial{data, rows, options, network, costs_of(machine)};
  std::vector<double> values = mapped(trial.constants, &NamedConstant::value);
  const std::vector<ComparedRow> stated = trial.predict(values);
  if (stated.empty())
    throw UserError(fmt::format("no row is about {}{}", machine.node.name,
                                network.empty() ? "" : " over " + network));
  std::vector<ComparedRow> fitted = stated;
  RobustFit fit = linearised(trial, values, fitted);
  for (int round = 0; round < network_rounds; ++round) {
    values = moved(values, solve(fit));
    fitted = trial.predict(values);
    fit = linearised(trial, values, fitted);
  }
  NetworkFit result{machine.node.name, network, {}, {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double factor = std::exp(uncertainty_of(fit, i));
    result.constants.push_back({trial.constants[i], values[i], values[i] / factor,
                                values[i] * factor,
                                std::ranges::any_of(fit.rows, [&](const RobustFit::Row& row) {
                                  return std::abs(row.slopes[i]) > weak_network_slope;
                                })});
  }
  result.sources = sources_of(trial, fit, values, stated, fitted);
  return result;
}

}  // namespace stepsim
