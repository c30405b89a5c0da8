#include "analysis/studies/fidelity/row_validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/studies/fidelity/row_tasks.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "analysis/studies/predict/rank_memory.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "sim/base/draw.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// A worker answers this about one scenario.
struct RowAnswer {
  double step = 0, tokens = 0, gpus = 1, allocated = 0, reserved = 0, needed = 0, capacity = 0,
         shown = 0, peak = 0, flops_per_token = 0, chance = 0;
  Fit fit{};
  Stack::MemoryLog log;
  std::size_t lighter = 0;  // which way to compute more again, from 1 on; 0: none
};

bool ran(const StepRow& row) {
  return row.outcome != "oom";
}

// The first of its ways that fits at the stated constants; 0: as it is, also where none does.
std::size_t way_that_fits(const RowQuestion& question, const StepRow& row) {
  const auto fits = [&](const std::string& text) {
    const Scenario scenario = parse_scenario(question.data, text, row.id);
    return footprint(scenario).fit() != Fit::oom;
  };
  // A run that failed says nothing of what would have fit.
  if (row.lighter.empty() || !ran(row) || fits(row.scenario)) return 0;
  for (std::size_t i = 0; i < row.lighter.size(); ++i)
    if (fits(row.lighter[i].scenario)) return i + 1;
  return 0;
}

// PyTorch's allocator follows the host, so its figures are those of the program's order.
RowAnswer answer_of(const RowQuestion& question, const StepRow& row, const MaybeDraw& draw) {
  const std::size_t way = way_that_fits(question, row);
  const std::string& text = way == 0 ? row.scenario : row.lighter[way - 1].scenario;
  const Scenario scenario = parse_scenario(question.data, text, row.id, draw);
  const Prediction p = predict(scenario, Kept::figures);
  const double gpus = static_cast<double>(scenario.cluster.ranks());
  const Stack::MemoryLog& log = scenario.stack.memory_log;
  const Footprint asked = footprint(scenario);
  const bool first = log.first_stage && asked.first_stage > 0;
  const double allocated = first ? asked.first_stage : asked.device.peak.bytes;
  Footprint memory = p.memory;
  if (row.memory && row.memory_kind.value_or(log.kind) != MemoryKind::allocated)
    memory.reserved = reserved_in_order(scenario, asked);
  return {.step = p.step_time.value,
          .tokens = p.tokens_per_second_per_gpu * gpus * p.step_time.value,
          .gpus = gpus,
          .allocated = allocated,
          .reserved = memory.reserved,
          .needed = p.memory.needed(),
          .capacity = p.memory.capacity,
          .shown = memory.shown(),
          .peak = scenario.cluster.gpu.peak.bf16.number(),
          .flops_per_token = p.flops.total() / (p.tokens_per_second_per_gpu * p.step_time.value),
          .chance = p.memory.chance(),
          .fit = p.memory.fit(),
          .log = log,
          .lighter = way};
}

// Some frameworks count what every matrix multiplies, and causal attention, which is what a
// prediction counts as well.
double flops_per_token(const StepRow& row, const RowAnswer& answer) {
  return row.counts_model_flops ? answer.flops_per_token : row.flops_per_token;
}

// Time of a step as the row measured it, by whatever it prints; 0: it prints none.
double measured_step(const StepRow& row, const RowAnswer& answer) {
  if (row.step) return *row.step;
  if (row.tokens_per_gpu) return answer.tokens / answer.gpus / *row.tokens_per_gpu;
  if (row.tokens) return answer.tokens / *row.tokens;
  const double flops = flops_per_token(row, answer) * answer.tokens / answer.gpus;
  if (flops > 0 && row.tflops) return flops / (*row.tflops * 1e12);
  if (flops > 0 && row.mfu) return flops / (*row.mfu / 100 * answer.peak);
  return 0;
}

std::vector<RowFigure> figures_of(const StepRow& row, const RowAnswer& answer) {
  std::vector<RowFigure> figures;
  const auto add = [&](std::string_view metric, const Cell& measured, double predicted) {
    if (measured && *measured > 0 && predicted > 0)
      figures.push_back({std::string(metric), *measured, predicted});
  };
  const double rate = answer.tokens / answer.step;
  const double flops = flops_per_token(row, answer) * rate / answer.gpus;
  add("step_s", row.step, answer.step);
  add("tok_s_gpu", row.tokens_per_gpu, rate / answer.gpus);
  add("tok_s_total", row.tokens, rate);
  add("tflops_gpu", row.tflops, flops / 1e12);
  add("mfu_pct", row.mfu, 100 * flops / answer.peak);
  return figures;
}

// Some tables print what is allocated, others what the allocator holds, or what the device has
// lost.
double predicted_memory(const RowAnswer& answer, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::allocated:
      return answer.allocated;
    case MemoryKind::reserved:
      return answer.reserved;
    case MemoryKind::device:
      return answer.shown;
    default:
      return answer.needed;
  }
}

void compare(const StepRow& row, const RowAnswer& answer, PredictedRow& result) {
  result.judged = answer.lighter == 0;
  result.scenario = row.scenario;
  if (answer.lighter > 0) {
    const StepRow::Lighter& lighter = row.lighter[answer.lighter - 1];
    result.scenario = lighter.scenario;
    result.assumed.push_back(
        fmt::format("checkpointing \"{}\": the least that fits", lighter.checkpointing));
  }
  result.figures = figures_of(row, answer);
  result.needed = answer.needed;
  result.capacity = answer.capacity;
  if (answer.capacity > 0) result.chance = answer.chance;
  result.fit = answer.fit;
  result.measured_fits = ran(row);
  result.asked = row.said("asked");
  result.known = row.said("known");
  if (const double bytes = row.measured_memory(answer.log); bytes > 0) {
    const double unit = bytes / *row.memory;
    result.memory_counts = row.memory_kind.value_or(answer.log.kind);
    result.memory_bound = row.memory_bound;
    const double predicted = predicted_memory(answer, result.memory_counts);
    result.figures.push_back({"mem_GB", *row.memory, predicted / unit});
    const double error = result.figures.back().error();
    result.memory_error = result.memory_bound ? std::max(0.0, error) : error;
  }
  const double step = measured_step(row, answer);
  if (step <= 0) return;
  result.timed = true;
  result.step_error = answer.step / step - 1;
  result.tokens_per_gpu = answer.tokens / answer.step / answer.gpus;
  result.measured_tokens_per_gpu = answer.tokens / step / answer.gpus;
}

RowFamily family_of(const std::string& name, const std::vector<const PredictedRow*>& rows) {
  RowFamily family;
  family.name = name;
  std::vector<double> times, memories, widths;
  double sum = 0;
  for (const PredictedRow* row : rows) {
    family.fits += row->judged ? 1 : 0;
    family.fits_right += row->judged && row->measured_fits == (row->fit != Fit::oom) ? 1 : 0;
    if (row->memory_error && !row->memory_bound) memories.push_back(std::abs(*row->memory_error));
    if (!row->timed) continue;
    times.push_back(std::abs(row->step_error));
    sum += row->step_error;
    if (std::abs(row->step_error) >= std::abs(family.worst_error)) {
      family.worst = row->id;
      family.worst_error = row->step_error;
    }
    if (!row->interval) continue;
    family.intervals += 1;
    family.inside += row->interval->low <= 0 && row->interval->high >= 0 ? 1 : 0;
    widths.push_back((row->interval->high - row->interval->low) / (1 + row->step_error));
  }
  std::ranges::sort(times);
  std::ranges::sort(widths);
  std::ranges::sort(memories);
  family.rows = times.size();
  family.memory_rows = memories.size();
  family.median = quantile(times, 0.5);
  family.p90 = quantile(times, 0.9);
  family.width = quantile(widths, 0.5);
  family.memory_median = quantile(memories, 0.5);
  if (!times.empty()) family.signed_mean = sum / static_cast<double>(times.size());
  return family;
}

}  // namespace

std::vector<PredictedRow> predict_rows(const RowQuestion& question) {
  std::vector<RowTask<RowAnswer>> tasks;
  for (const StepRow& row : question.rows) {
    RowTask<RowAnswer>& task = tasks.emplace_back(task_of<RowAnswer>(row));
    task.ask = [&](const MaybeDraw& draw) { return answer_of(question, row, draw); };
    task.compare = [&row](const RowAnswer& answer, PredictedRow& result) {
      compare(row, answer, result);
    };
  }
  return predict_all(tasks, question.samples, question.seed, question.like);
}

std::vector<MemoryErrors> memory_errors(std::span<const PredictedRow> rows) {
  constexpr std::size_t bound = memory_kind_names.size() + 1;
  std::array<MemoryErrors, bound + 1> kinds;
  std::array<std::vector<double>, kinds.size()> errors;
  for (std::size_t i = 0; i < memory_kind_names.size(); ++i) kinds[i].counts = memory_kind_names[i];
  kinds[memory_kind_names.size()].counts = "unsaid";
  kinds[bound].counts = "at most";
  for (const PredictedRow& row : rows) {
    if (!row.predicted() || !row.memory_error) continue;
    const std::size_t kind = row.memory_bound ? bound : static_cast<std::size_t>(row.memory_counts);
    const double error = *row.memory_error;
    errors[kind].push_back(std::abs(error));
    kinds[kind].signed_mean += error;
    if (std::abs(error) < std::abs(kinds[kind].worst_error)) continue;
    kinds[kind].worst = row.id;
    kinds[kind].worst_error = error;
  }
  std::vector<MemoryErrors> found;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (errors[i].empty()) continue;
    std::ranges::sort(errors[i]);
    kinds[i].rows = errors[i].size();
    kinds[i].median = quantile(errors[i], 0.5);
    kinds[i].p90 = quantile(errors[i], 0.9);
    kinds[i].signed_mean /= static_cast<double>(errors[i].size());
    found.push_back(std::move(kinds[i]));
  }
  return found;
}

std::vector<ChanceRows> chances_of(std::span<const PredictedRow> rows) {
  constexpr std::size_t bands = 10;
  std::vector<ChanceRows> found(bands);
  for (const PredictedRow& row : rows) {
    if (!row.predicted() || !row.judged || !row.chance) continue;
    const auto band = std::min(bands - 1, static_cast<std::size_t>(*row.chance * bands));
    ChanceRows& own = found[band];
    own.low = static_cast<double>(band) / bands;
    own.rows += 1;
    own.fitted += row.measured_fits ? 1 : 0;
    own.mean += *row.chance;
  }
  std::erase_if(found, [](const ChanceRows& band) { return band.rows == 0; });
  for (ChanceRows& band : found) band.mean /= static_cast<double>(band.rows);
  return found;
}

std::vector<RowFamily> families_of(std::span<const PredictedRow> rows) {
  std::map<std::string, std::vector<const PredictedRow*>> by_name;
  std::vector<const PredictedRow*> all;
  for (const PredictedRow& row : rows) {
    if (!row.predicted()) continue;
    by_name[row.family].push_back(&row);
    all.push_back(&row);
  }
  std::vector<RowFamily> families;
  families.reserve(by_name.size() + 1);
  for (const auto& [name, members] : by_name) families.push_back(family_of(name, members));
  families.push_back(family_of("all", all));
  return families;
}

Range error_interval_of(const PredictedRow& row) {
  std::vector<double> errors{row.step_error};
  for (const DrawnError& each : row.drawn) errors.push_back(each.error);
  std::ranges::sort(errors);
  return {quantile(errors, 0.1), quantile(errors, 0.9)};
}

}  // namespace stepsim
