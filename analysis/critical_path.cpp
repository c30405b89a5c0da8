#include "analysis/critical_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stepsim {
namespace {

constexpr std::int16_t outside = -1;  // of the layers
// This many consecutive parts of at most so few layers count as alternating layers.
constexpr std::size_t fewest_turns = 6;
constexpr int most_layers_of_a_turn = 2;

using PathSums = std::array<double, cause_names.size()>;

Phase pass_of(Phase phase) {
  return phase == Phase::recompute ? Phase::backward : phase;
}

void set_causes(PathPart& part, const PathSums& sums) {
  part.causes.clear();
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] > 0) part.causes.emplace_back(static_cast<Cause>(i), Seconds{sums[i]});
  std::ranges::stable_sort(part.causes,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
}

void lengthen(PathPart& part, const PathPart& next) {
  PathSums sums{};
  for (const PathPart* each : {&std::as_const(part), &next})
    for (const auto& [cause, seconds] : each->causes)
      sums[static_cast<std::size_t>(cause)] += seconds.value;
  part.seconds += next.seconds;
  set_causes(part, sums);
}

bool mostly_the_same(const PathPart& a, const PathPart& b) {
  if (a.causes.empty() || b.causes.empty()) return a.causes.empty() == b.causes.empty();
  return a.causes.front().first == b.causes.front().first;
}

std::vector<PathPart> fold_layers(const std::vector<PathPart>& parts) {
  std::vector<PathPart> result;
  for (const PathPart& part : parts) {
    const bool goes_on = !result.empty() && result.back().pass == part.pass &&
                         result.back().first_micro_batch == part.first_micro_batch &&
                         mostly_the_same(result.back(), part);
    if (!goes_on) {
      result.push_back(part);
      continue;
    }
    lengthen(result.back(), part);
    if (result.back().first_layer < 0) result.back().first_layer = part.first_layer;
    if (part.last_layer >= 0) result.back().last_layer = part.last_layer;
  }
  return result;
}

bool is_turn(const PathPart& part) {
  return part.first_layer >= 0 &&
         std::abs(part.first_layer - part.last_layer) < most_layers_of_a_turn;
}

// Returns where a stretch of turns that begins here ends.
std::size_t end_of_turns(const std::vector<PathPart>& parts, std::size_t first) {
  std::size_t end = first;
  while (end < parts.size() && is_turn(parts[end]) && parts[end].pass == parts[first].pass &&
         parts[end].first_micro_batch == parts[first].first_micro_batch)
    ++end;
  return end;
}

// Folds layers that take turns: every second one may wait for something else, since buckets fill at
// other places than layers end.
std::vector<PathPart> fold_turns(const std::vector<PathPart>& parts) {
  std::vector<PathPart> result;
  for (std::size_t first = 0; first < parts.size();) {
    const std::size_t end = end_of_turns(parts, first);
    const bool turns = end - first >= fewest_turns;
    result.push_back(parts[first++]);
    for (; turns && first < end; ++first) {
      lengthen(result.back(), parts[first]);
      result.back().last_layer = parts[first].last_layer;
    }
  }
  return result;
}

bool same_way(const PathPart& a, const PathPart& b) {
  return a.pass == b.pass && a.first_layer == b.first_layer && a.last_layer == b.last_layer &&
         mostly_the_same(a, b);
}

// Returns where the parts of one micro-batch end.
std::size_t end_of(const std::vector<PathPart>& parts, std::size_t first) {
  std::size_t end = first;
  while (end < parts.size() && parts[end].first_micro_batch == parts[first].first_micro_batch)
    ++end;
  return end;
}

std::vector<PathPart> fold_micro_batches(const std::vector<PathPart>& parts) {
  std::vector<PathPart> result;
  for (std::size_t first = 0; first < parts.size();) {
    const std::size_t end = end_of(parts, first), size = end - first;
    const std::int32_t micro_batch = parts[first].first_micro_batch;
    bool alike = micro_batch > 0 && result.size() >= size &&
                 result.back().last_micro_batch == micro_batch - 1;
    const std::size_t block = alike ? result.size() - size : result.size();
    for (std::size_t i = 0; alike && i < size; ++i)
      alike = same_way(result[block + i], parts[first + i]);
    for (std::size_t i = first; i < end; ++i) {
      if (!alike) {
        result.push_back(parts[i]);
        continue;
      }
      lengthen(result[block + i - first], parts[i]);
      result[block + i - first].last_micro_batch = micro_batch;
    }
    first = end;
  }
  return result;
}

}  // namespace

std::vector<OpId> critical_path(const OpGraph& graph, const Trace& trace) {
  std::vector<OpId> path;
  if (graph.size() == 0) return path;
  const auto last = std::ranges::max_element(trace.finish);
  OpId at{static_cast<std::uint32_t>(last - trace.finish.begin())};
  for (;;) {
    path.push_back(at);
    const auto before = graph.predecessors(at);
    if (before.empty()) break;
    at = *std::ranges::max_element(
        before, [&](OpId a, OpId b) { return trace.finish[index(a)] < trace.finish[index(b)]; });
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<PathPart> path_parts(const OpGraph& graph, const Trace& trace, std::int64_t layers) {
  std::vector<PathPart> parts;
  PathSums sums{};
  const auto close = [&] {
    if (!parts.empty()) set_causes(parts.back(), sums);
    sums = {};
  };
  for (const OpId id : critical_path(graph, trace)) {
    const Op& op = graph[id];
    const double seconds = trace.finish[index(id)] - trace.start[index(id)];
    if (seconds <= 0) continue;
    const Phase pass = pass_of(op.phase);
    const std::int16_t layer = op.layer < layers ? op.layer : outside;
    const bool goes_on = !parts.empty() && parts.back().pass == pass &&
                         parts.back().first_layer == layer &&
                         parts.back().first_micro_batch == op.micro_batch;
    if (!goes_on) {
      close();
      parts.push_back({pass, layer, layer, op.micro_batch, op.micro_batch, {}, {}});
    }
    parts.back().seconds += Seconds{seconds};
    sums[static_cast<std::size_t>(op.cause)] += seconds;
  }
  close();
  return parts;
}

std::vector<PathPart> folded(const std::vector<PathPart>& parts) {
  return fold_micro_batches(fold_turns(fold_layers(parts)));
}

std::string title_of(const PathPart& part) {
  if (!part.name.empty()) return part.name;
  std::string text(to_text(part.pass));
  if (part.first_layer >= 0)
    text += part.first_layer == part.last_layer
                ? fmt::format(", layer {}", part.first_layer)
                : fmt::format(", layers {} to {}", part.first_layer, part.last_layer);
  if (part.last_micro_batch > part.first_micro_batch)
    text += fmt::format(", micro-batches {} to {}", part.first_micro_batch, part.last_micro_batch);
  else if (part.first_micro_batch > 0)
    text += fmt::format(", micro-batch {}", part.first_micro_batch);
  return text;
}

std::size_t first_difference(const std::vector<PathPart>& a, const std::vector<PathPart>& b,
                             Seconds least) {
  const std::size_t both = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < both; ++i) {
    const bool same_place = a[i].pass == b[i].pass && a[i].first_layer == b[i].first_layer &&
                            a[i].first_micro_batch == b[i].first_micro_batch;
    if (!same_place || std::abs(a[i].seconds.value - b[i].seconds.value) > least.value) return i;
  }
  return a.size() == b.size() ? a.size() : both;
}

}  // namespace stepsim
