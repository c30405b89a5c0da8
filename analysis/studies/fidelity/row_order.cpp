#include "analysis/studies/fidelity/row_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace stepsim {
namespace {

// What a note says of the machine that a row ran on: "this row is before that".
std::string machine_state(const std::string& notes) {
  constexpr std::string_view mark = "this row is ";
  const std::size_t begin = notes.find(mark);
  if (begin == std::string::npos) return "";
  return notes.substr(begin, notes.find(';', begin) - begin);
}

std::string group_of(const StepRow& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", row.source, row.hardware, row.framework,
                     row.model, row.layers.value_or(0), row.hidden.value_or(0),
                     row.heads.value_or(0), row.sequence.value_or(0), row.gpus.value_or(0),
                     row.global_batch.value_or(0), row.precision + row.task,
                     machine_state(row.notes));
}

// Seconds of a step of one batch are as tokens that were not made.
bool is_right(const PredictedRow& a, const PredictedRow& b) {
  return (a.measured_tokens_per_gpu > b.measured_tokens_per_gpu) ==
         (a.tokens_per_gpu > b.tokens_per_gpu);
}

bool differ(const PredictedRow& a, const PredictedRow& b) {
  const auto [slow, fast] = std::minmax(a.measured_tokens_per_gpu, b.measured_tokens_per_gpu);
  return fast > slow * (1 + tellable);
}

OrderedGroup order_of(const StepRow& of, const std::vector<const PredictedRow*>& rows) {
  OrderedGroup group{.model = of.model,
                     .gpus = of.gpus.value_or(0),
                     .batch = of.global_batch.value_or(0),
                     .rows = rows.size()};
  const auto fastest = [&](const auto measure) {
    return *std::ranges::max_element(rows, {},
                                     [&](const PredictedRow* row) { return row->*measure; });
  };
  const PredictedRow* best = fastest(&PredictedRow::measured_tokens_per_gpu);
  const PredictedRow* picked = fastest(&PredictedRow::tokens_per_gpu);
  group.best = best->id;
  group.picked = picked->id;
  group.lost = best->measured_tokens_per_gpu / picked->measured_tokens_per_gpu - 1;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      if (!differ(*rows[i], *rows[j])) continue;
      ++group.pairs;
      group.right += is_right(*rows[i], *rows[j]) ? 1 : 0;
    }
  return group;
}

}  // namespace

std::vector<OrderedGroup> ordered_groups(std::span<const StepRow> rows,
                                         std::span<const PredictedRow> predicted) {
  std::map<std::string, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (predicted[i].predicted() && predicted[i].timed && rows[i].global_batch)
      places[group_of(rows[i])].push_back(i);
  std::vector<OrderedGroup> groups;
  for (const auto& [key, members] : places) {
    if (members.size() < 2) continue;
    std::vector<const PredictedRow*> alike;
    for (const std::size_t i : members) alike.push_back(&predicted[i]);
    groups.push_back(order_of(rows[members.front()], alike));
  }
  return groups;
}

OrderSummary summary_of(std::span<const OrderedGroup> groups) {
  OrderSummary all;
  for (const OrderedGroup& group : groups) {
    ++all.groups;
    all.pairs += group.pairs;
    all.right += group.right;
    all.worst_lost = std::max(all.worst_lost, group.lost);
  }
  return all;
}

}  // namespace stepsim
