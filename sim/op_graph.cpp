#include "sim/op_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace stepsim {
namespace {

[[noreturn]] void broken(const std::string& what) {
  throw std::logic_error(what);
}

bool is_amount(double value) {
  return std::isfinite(value) && value >= 0;
}

bool carries_traffic(OpKind kind) {
  return kind == OpKind::collective || kind == OpKind::transfer || kind == OpKind::cpu;
}

void validate(const Pattern& pattern, const Platform& platform) {
  for (const Rank member : pattern.members)
    if (member >= platform.devices.size())
      broken(fmt::format("pattern {}: no rank {}", pattern.name, member));
  if (!(pattern.occupancy >= 0 && pattern.occupancy <= 1))
    broken(fmt::format("pattern {}: occupancy lies in [0, 1]", pattern.name));
  for (const Round& round : pattern.rounds) {
    if (!is_amount(round.latency.value))
      broken(fmt::format("pattern {}: latency is no amount", pattern.name));
    if (!round.exchange.ends.empty())
      broken(fmt::format("pattern {}: an exchange is not spelt out", pattern.name));
    for (const Flow& flow : round.flows) {
      if (flow.path.empty()) broken(fmt::format("pattern {}: a flow has no route", pattern.name));
      if (!is_amount(flow.wire) || !is_amount(flow.share) || !(flow.rate_cap > 0))
        broken(fmt::format("pattern {}: a flow's bytes are no amount", pattern.name));
      for (const LinkId link : flow.path)
        if (index(link) >= platform.links.size())
          broken(fmt::format("pattern {}: no link {}", pattern.name, index(link)));
    }
  }
}

}  // namespace

void OpSums::add(const Op& op) {
  const std::size_t cause = static_cast<std::size_t>(op.cause);
  if (op.pattern == no_pattern) {
    seconds[cause] += op.seconds.value;
    if (op.kind == OpKind::compute && op.rank == 0) kernels += op.seconds.value;
    return;
  }
  if (traffic.size() <= index(op.pattern)) traffic.resize(index(op.pattern) + 1);
  Traffic& sum = traffic[index(op.pattern)][cause];
  ++sum.uses;
  sum.bytes += op.bytes.value;
}

OpSums OpGraph::sums() const {
  OpSums all = sums_;
  for (const Op& op : ops_) all.add(op);
  return all;
}

NameId OpGraph::name(std::string_view text) {
  NameId& lately = lately_[std::hash<const char*>{}(text.data()) / 8 % lately_.size()];
  if (index(lately) < names_.size() && names_[index(lately)] == text) return lately;
  const auto [place, inserted] =
      name_ids_.try_emplace(std::string(text), NameId{static_cast<std::uint32_t>(names_.size())});
  if (inserted) names_.emplace_back(text);
  return lately = place->second;
}

PatternId OpGraph::pattern(Pattern pattern) {
  patterns_.push_back(std::move(pattern));
  return PatternId{static_cast<std::uint32_t>(patterns_.size() - 1)};
}

void OpGraph::reserve(std::size_t operations, std::size_t edges, std::size_t effects) {
  memory_.reserve(effects);
  if (labels_only_) {
    labels_.reserve(operations);
    return;
  }
  if (sums_only_) return;
  ops_.reserve(operations);
  offsets_.reserve(operations + 1);
  edges_.reserve(edges);
}

OpId OpGraph::add(const Op& op, std::span<const OpId> after) {
  const OpId id{static_cast<std::uint32_t>(size())};
  if (labels_only_) {
    labels_.push_back({op.name, op.phase});
    return id;
  }
  if (sums_only_) {
    sums_.add(op);
    ++summed_;
    return id;
  }
  for (const OpId earlier : after)
    if (earlier >= id) broken("an operation may depend only on earlier ones");
  ops_.push_back(op);
  edges_.insert(edges_.end(), after.begin(), after.end());
  offsets_.push_back(edges_.size());
  return id;
}

void OpGraph::make_free(OpId id) {
  Op& op = ops_[index(id)];
  op.kind = OpKind::join;
  op.pattern = no_pattern;
  op.seconds = {};
  op.bytes = {};
}

void OpGraph::stretch(double factor) {
  if (factor == 1) return;
  for (Op& op : ops_) op.seconds = factor * op.seconds;
  for (double& seconds : sums_.seconds) seconds *= factor;
  sums_.kernels *= factor;
  for (Pattern& pattern : patterns_)
    for (Round& round : pattern.rounds) {
      round.latency = factor * round.latency;
      for (Flow& flow : round.flows) flow.rate_cap /= factor;
    }
}

Successors::Successors(const OpGraph& graph)
    : offsets_(graph.size() + 1, 0), targets_(graph.edges().size()) {
  for (const OpId from : graph.edges()) ++offsets_[index(from) + 1];
  for (std::size_t i = 0; i < graph.size(); ++i) offsets_[i + 1] += offsets_[i];
  std::vector<std::uint64_t> fill(offsets_.begin(), offsets_.end() - 1);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    for (const OpId from : graph.predecessors(id)) targets_[fill[index(from)]++] = id;
  }
}

Bytes largest_flow(const OpGraph& graph) {
  std::vector<double> widest;  // per pattern: wire bytes of its largest flow per byte
  for (const Pattern& pattern : graph.patterns()) {
    double wire = 0;
    for (const Round& round : pattern.rounds)
      for (const Flow& flow : round.flows) wire = std::max(wire, flow.wire);
    widest.push_back(wire);
  }
  Bytes largest;
  for (const Op& op : graph.ops())
    if (op.pattern != no_pattern) largest = std::max(largest, op.bytes * widest[index(op.pattern)]);
  return largest;
}

void validate(const OpGraph& graph, const Platform& platform) {
  for (const Pattern& pattern : graph.patterns()) validate(pattern, platform);
  for (const Op& op : graph.ops()) {
    if (op.rank >= platform.devices.size()) broken(fmt::format("no rank {}", op.rank));
    if (!is_amount(op.seconds.value) || !is_amount(op.bytes.value) || !is_amount(op.flops.value))
      broken("an operation's cost is no amount");
    if (carries_traffic(op.kind) && index(op.pattern) >= graph.patterns().size())
      broken("an operation names no pattern");
    if (carries_traffic(op.kind) && graph.patterns()[index(op.pattern)].members.empty())
      broken(fmt::format("pattern {} has no members", graph.patterns()[index(op.pattern)].name));
  }
}

}  // namespace stepsim
