#include "analysis/studies/fidelity/row_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/draw.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Returns what a note says of the machine that a row ran on: "this row is before that".
std::string machine_state(const std::string& notes) {
  constexpr std::string_view mark = "this row is ";
  const std::size_t begin = notes.find(mark);
  if (begin == std::string::npos) return "";
  return notes.substr(begin, notes.find(';', begin) - begin);
}

std::string group_of(const StepRow& row) {
  std::string key = machine_state(row.said("notes"));
  for (const std::string_view column :
       {"source", "hardware", "framework", "model", "layers", "hidden", "heads", "seq_len", "gpus",
        "global_batch_seqs", "precision", "task"})
    key += "|" + row.said(column);
  return key;
}

struct MeasuredLayout {
  std::string id;                 // of its first row
  double made = 0, measured = 0;  // tokens a second and GPU
  std::size_t rows = 0;
};

// Returns what a row says of its run: its scenario, but for the name in the lines before the model.
std::string_view run_of(std::string_view scenario) {
  const std::size_t begin = scenario.find("\nmodel:");
  return begin == std::string_view::npos ? scenario : scenario.substr(begin);
}

std::vector<MeasuredLayout> layouts_of(const std::vector<const PredictedRow*>& rows) {
  std::vector<MeasuredLayout> layouts;
  std::map<std::string_view, std::size_t> places;
  for (const PredictedRow* row : rows) {
    const auto [place, is_new] = places.try_emplace(run_of(row->scenario), layouts.size());
    if (is_new) layouts.push_back({.id = row->id, .made = row->tokens_per_gpu});
    MeasuredLayout& layout = layouts[place->second];
    ++layout.rows;
    layout.measured +=
        (row->measured_tokens_per_gpu - layout.measured) / static_cast<double>(layout.rows);
  }
  return layouts;
}

// Seconds of a step of one batch are as tokens that were not made.
bool is_right(const MeasuredLayout& a, const MeasuredLayout& b) {
  return (a.measured > b.measured) == (a.made > b.made);
}

bool differ(const MeasuredLayout& a, const MeasuredLayout& b) {
  const auto [slow, fast] = std::minmax(a.measured, b.measured);
  return fast > slow * (1 + tellable);
}

OrderedGroup order_of(const StepRow& of, std::size_t rows,
                      const std::vector<MeasuredLayout>& layouts) {
  OrderedGroup group{.model = of.said("model"),
                     .gpus = of.number("gpus"),
                     .batch = of.number("global_batch_seqs"),
                     .rows = rows};
  const MeasuredLayout& best = *std::ranges::max_element(layouts, {}, &MeasuredLayout::measured);
  const MeasuredLayout& picked = *std::ranges::max_element(layouts, {}, &MeasuredLayout::made);
  group.best = best.id;
  group.picked = picked.id;
  group.lost = best.measured / picked.measured - 1;
  for (std::size_t i = 0; i < layouts.size(); ++i)
    for (std::size_t j = i + 1; j < layouts.size(); ++j) {
      if (!differ(layouts[i], layouts[j])) continue;
      ++group.pairs;
      group.right += is_right(layouts[i], layouts[j]) ? 1 : 0;
    }
  return group;
}

}  // namespace

std::vector<OrderedGroup> ordered_groups(std::span<const StepRow> rows,
                                         std::span<const PredictedRow> predicted) {
  std::map<std::string, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (predicted[i].predicted() && predicted[i].timed && rows[i].number("global_batch_seqs") > 0)
      places[group_of(rows[i])].push_back(i);
  std::vector<OrderedGroup> groups;
  for (const auto& [key, members] : places) {
    std::vector<const PredictedRow*> alike;
    for (const std::size_t i : members) alike.push_back(&predicted[i]);
    const std::vector<MeasuredLayout> layouts = layouts_of(alike);
    if (layouts.size() > 1)
      groups.push_back(order_of(rows[members.front()], alike.size(), layouts));
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

namespace {

double value_on(const StepRow& row, SeriesAxis axis) {
  constexpr std::array<std::string_view, axis_names.size()> columns{
      "gpus", "seq_len", "params_total_B", "micro_batch", "act_ckpt"};
  const std::string_view column = columns[static_cast<std::size_t>(axis)];
  if (axis == SeriesAxis::checkpointing) return row.said(column) == "none" ? 1 : 2;
  return row.number(column);
}

// All that stays the same along a series.
std::string fixed(const StepRow& row, SeriesAxis axis) {
  std::vector<std::string_view> columns{"source",  "hardware", "framework", "precision",
                                        "compile", "task",     "offload"};
  if (axis != SeriesAxis::gpus) columns.emplace_back("gpus");
  if (axis != SeriesAxis::sequence) columns.emplace_back("seq_len");
  if (axis != SeriesAxis::model) append(columns, std::vector<std::string_view>{"model", "layers"});
  columns.emplace_back(axis == SeriesAxis::checkpointing ? "micro_batch" : "act_ckpt");
  std::string key = fmt::format("{}", std::max(1.0, row.number("tp")));
  for (const std::string_view column : columns) key += "|" + row.said(column);
  return key;
}

}  // namespace

std::vector<SeriesStep> series_steps(std::span<const StepRow> rows,
                                     std::span<const PredictedRow> predicted) {
  std::vector<SeriesStep> steps;
  for (std::size_t a = 0; a < axis_names.size(); ++a) {
    const auto axis = static_cast<SeriesAxis>(a);
    std::map<std::string, std::map<double, std::size_t>> series;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (predicted[i].predicted() && predicted[i].timed && value_on(rows[i], axis) > 0)
        series[fixed(rows[i], axis)].try_emplace(value_on(rows[i], axis), i);
    for (const auto& [key, places] : series) {
      const PredictedRow* before = nullptr;
      for (const auto& [value, place] : places) {
        const PredictedRow& row = predicted[place];
        if (before != nullptr)
          steps.push_back({axis, before->id, row.id,
                           row.measured_tokens_per_gpu / before->measured_tokens_per_gpu,
                           row.tokens_per_gpu / before->tokens_per_gpu});
        before = &row;
      }
    }
  }
  return steps;
}

std::vector<AxisErrors> errors_by_axis(std::span<const SeriesStep> steps) {
  std::vector<AxisErrors> result;
  for (std::size_t a = 0; a < axis_names.size(); ++a) {
    std::vector<double> sizes;
    for (const SeriesStep& step : steps)
      if (step.axis == static_cast<SeriesAxis>(a)) sizes.push_back(std::abs(step.error()));
    std::ranges::sort(sizes);
    result.push_back(
        {static_cast<SeriesAxis>(a), sizes.size(), quantile(sizes, 0.5), quantile(sizes, 0.9)});
  }
  return result;
}

}  // namespace stepsim
