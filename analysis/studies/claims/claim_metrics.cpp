#include "analysis/studies/claims/claim_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/critical_path.hpp"
#include "analysis/studies/outcome/metrics.hpp"

namespace stepsim {
namespace {

constexpr std::string_view memory_prefix = "memory.";
constexpr std::string_view time_prefix = "time.", share_prefix = "share.";

// Returns the busiest link of a pattern by its kind: "xgmi" of "node0.xgmi.gpu0>gpu1".
std::string link_of(const Platform& platform, const Pattern& pattern) {
  std::map<std::string, double> load;
  for (const Round& round : pattern.rounds)
    for (const Flow& flow : round.flows)
      for (const LinkId id : flow.path) {
        const Link& link = platform.links[index(id)];
        load[link.name] += flow.wire * link.weight / link.capacity.value;
      }
  const auto busiest = std::ranges::max_element(
      load, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (busiest == load.end()) return "latency";
  std::string name = busiest->first;
  if (name.starts_with("node")) name.erase(0, name.find('.') + 1);
  return name.substr(0, name.find('.'));
}

std::string resource_of(const Run& run, const Op& op) {
  switch (op.kind) {
    case OpKind::compute:
      return "the GPU";
    case OpKind::host:
      return "the host thread";
    case OpKind::cpu:
      return "host memory";
    case OpKind::collective:
    case OpKind::transfer:
      return link_of(run.platform, run.graph.patterns()[index(op.pattern)]);
    default:
      return "waiting";
  }
}

std::string bound_by(const Run& run) {
  struct Part {
    double seconds = 0;
    OpId example{};
  };
  std::map<std::pair<Cause, OpKind>, Part> parts;
  for (const OpId id : critical_path(run.graph, run.trace)) {
    Part& part = parts[{run.graph[id].cause, run.graph[id].kind}];
    part.seconds += run.trace.finish[index(id)] - run.trace.start[index(id)];
    part.example = id;
  }
  const auto most = std::ranges::max_element(
      parts, [](const auto& a, const auto& b) { return a.second.seconds < b.second.seconds; });
  if (most == parts.end()) return "nothing";
  return fmt::format("{} on {}, {:.0f} %", to_text(most->first.first),
                     resource_of(run, run.graph[most->second.example]),
                     100 * most->second.seconds / run.trace.makespan.value);
}

std::string largest_of(const Prediction& p) {
  const Footprint& memory = p.memory;
  std::string name = "parameters, gradients and optimizer";
  double most = memory.states;
  for (const auto& [class_name, bytes] : memory.device.peak.classes)
    if (bytes > most) {
      name = class_name;
      most = bytes;
    }
  return fmt::format("most of it {}, {} of {}", name, to_text(Bytes{most}),
                     to_text(Bytes{memory.needed()}));
}

}  // namespace

std::optional<Dimension> claim_dimension(std::string_view metric) {
  if (metric.starts_with(memory_prefix)) return Dimension::bytes;
  if (metric.starts_with(share_prefix))
    return find_metric(fmt::format("{}{}", time_prefix, metric.substr(share_prefix.size())))
               ? std::optional(Dimension::ratio)
               : std::nullopt;
  if (metric == "parameters" || metric == "active_parameters") return Dimension::ratio;
  if (const auto place = find_metric(metric)) return all_metrics()[*place].dimension;
  return std::nullopt;
}

std::vector<std::string> claim_metric_names() {
  std::vector<std::string> names{"parameters", "active_parameters", "memory.activations"};
  for (const NamedMetric& metric : all_metrics()) {
    names.push_back(metric.name);
    if (metric.name.starts_with(time_prefix))
      names.push_back(fmt::format("{}{}", share_prefix, metric.name.substr(time_prefix.size())));
  }
  return names;
}

std::optional<double> PointFacts::of(const std::string& metric) const {
  if (const auto place = figures.find(metric); place != figures.end()) return place->second;
  if (!metric.starts_with(share_prefix)) return std::nullopt;
  const auto part = of(std::string(time_prefix) + metric.substr(share_prefix.size()));
  const auto step = of("step_time");
  return part && step ? std::optional(*part / *step) : std::nullopt;
}

PointFacts facts_of(const Scenario& scenario, Prediction prediction) {
  PointFacts facts;
  // A claim may compare steps of which one is just too large: times are asked of both.
  const bool fits = prediction.memory.fit() != Fit::oom;
  prediction.memory.margin = {};
  prediction.memory.host_capacity = prediction.memory.host.peak.bytes;
  const Outcome outcome = outcome_of(scenario, prediction);
  for (const NamedMetric& metric : all_metrics())
    if (const auto value = outcome.of(metric.name)) facts.figures[metric.name] = *value;
  facts.figures["fits"] = fits ? 1 : 0;
  facts.figures["parameters"] = static_cast<double>(count_parameters(scenario.model).total());
  facts.figures["active_parameters"] = static_cast<double>(active_parameters(scenario.model));
  for (const auto& [name, bytes] : prediction.memory.device.peak.classes)
    facts.figures[std::string(memory_prefix) + name] = bytes;
  facts.bound_by = bound_by(prediction.run);
  facts.largest = largest_of(prediction);
  return facts;
}

PointFacts facts_of(const Scenario& scenario, const GrpoPrediction& p) {
  PointFacts facts;
  const Outcome outcome = outcome_of(scenario, p);
  GrpoPrediction there = p;  // what is too large has times to compare, too
  if (p.ran) there.memory.failure.reset();
  const Outcome figures = outcome_of(scenario, there);
  for (const NamedMetric& metric : all_metrics())
    if (const auto value = figures.of(metric.name)) facts.figures[metric.name] = *value;
  facts.figures["fits"] = outcome.feasible ? 1 : 0;
  facts.figures["parameters"] = static_cast<double>(count_parameters(scenario.model).total());
  facts.figures["active_parameters"] = static_cast<double>(active_parameters(scenario.model));
  facts.bound_by = outcome.feasible ? outcome.bottleneck : outcome.reason;
  facts.largest = outcome.feasible ? fmt::format("a learner needs {} of {}",
                                                 to_text(Bytes{p.memory.learner.most()}),
                                                 to_text(Bytes{p.memory.learner_capacity}))
                                   : outcome.reason;
  return facts;
}

}  // namespace stepsim
