// `kernels`: single kernels, predicted beside measured, and the curve that would meet them best.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/studies/fidelity/kernel_tables.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/result_kinds.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs{
    OptionSpec{"fit", "GPU", "the curves of this GPU's kernels that meet them best"},
    OptionSpec{"rows", "", "every kernel, not only the families"},
    OptionSpec{"json", "", "for machines"},
};
constexpr Usage usage{
    "stepsim kernels [TABLE.csv ...] [--rows] [--fit GPU] [--json]",
    "Times of single kernels that somebody measured beside those that the GPU's file gives. "
    "Columns: id, source, hardware, op, dtype, batch, and time_ms or tflops; of matrix products "
    "(op "
    "gemm, batched_gemm, grouped_gemm) M, N, K, layout, groups; of attention (op attention_fwd, "
    "attention_bwd) kernel, queries, keys, heads, head_dim, causal. Without a table: gemm.csv and "
    "attention.csv of scenarios/measured.",
    option_specs,
    "  stepsim kernels\n  stepsim kernels --fit h100-sxm\n  stepsim kernels my.csv --rows\n", 8};

std::string tera(double rate) {
  return fmt::format("{:.1f}", rate / 1e12);
}

RecordList row_list(const KernelTimes& times) {
  return list_of(times.kernels, [](const TimedKernel& k) -> Records {
    return {{"id", "row", k.id},
            {"gpu", "GPU", k.gpu},
            {"kernel", "kernel", k.kind},
            {"m", "M", k.work.rows},
            {"n", "N", k.work.width},
            {"k", "K", k.work.depth},
            {"measured_s", "time", Seconds{k.measured}},
            {"predicted_s", "time", Seconds{k.predicted}},
            {"measured_flops", "measured TFLOP/s", k.work.flops / k.measured, Measure::teraflops},
            {"predicted_flops", "predicted", k.work.flops / k.predicted, Measure::teraflops},
            {"error", "error", k.error(), Measure::error}};
  });
}

RecordList family_list(const KernelTimes& times) {
  return list_of(families_of(times.kernels), [](const KernelFamily& f) -> Records {
    return {{"name", "family", f.name},
            {"rows", "rows", f.rows},
            {"median_abs_error", "median |error|", f.median, Measure::share},
            {"p90_abs_error", "90 %", f.p90, Measure::share},
            {"signed_mean", "signed mean", f.signed_mean, Measure::error},
            {"worst_error", "worst", f.worst_error, Measure::error},
            {"worst", "row of that", f.worst}};
  });
}

RecordList skipped_list(const KernelTimes& times) {
  return list_of(times.skipped, [](const SkippedKernel& row) -> Records {
    return {{"id", "left out", row.id}, {"reason", "why", row.reason}};
  });
}

std::string text_of(const KernelTimes& times, bool rows) {
  std::string text;
  if (rows)
    text += render(table_of(row_list(times).items, {{"gpu"},
                                                    {"kernel"},
                                                    {"m"},
                                                    {"n"},
                                                    {"k"},
                                                    {"measured_flops"},
                                                    {"predicted_flops"},
                                                    {"error"},
                                                    {"id"}})) +
            "\n";
  text += render(table_of(family_list(times).items, {{"name"},
                                                     {"rows"},
                                                     {"median_abs_error"},
                                                     {"p90_abs_error"},
                                                     {"signed_mean"},
                                                     {"worst_error"},
                                                     {"worst", ""}}));
  if (!times.skipped.empty())
    text += "\n" + render(table_of(skipped_list(times).items, {{"id"}, {"reason"}}));
  return text + fmt::format("\n{} of {} rows are predicted; errors are those of the time\n",
                            times.kernels.size(), times.kernels.size() + times.skipped.size());
}

Records records_of(const KernelTimes& times) {
  return {{"rows", "one for each kernel", row_list(times)},
          {"families", "errors by GPU and kind", family_list(times)},
          {"left_out", "rows without a prediction", skipped_list(times)}};
}

std::string number_text(double value) {
  return value >= 1e6 ? fmt::format("{} TFLOP/s", tera(value)) : fmt::format("{:.3g}", value);
}

std::string text_of(const FittedCurve& curve) {
  TextTable constants{
      {"constant", "stated", "fitted"}, {Align::left, Align::right, Align::right}, {}};
  for (const CurveConstant& c : curve.constants)
    constants.rows.push_back({c.name, number_text(c.stated), number_text(c.fitted)});
  TextTable sources{{"source", "rows", "median as stated", "fitted", "fitted without it"},
                    {Align::left, Align::right, Align::right, Align::right, Align::right},
                    {}};
  for (const CurveSource& s : curve.sources)
    sources.rows.push_back({s.name, fmt::format("{}", s.rows), percent(s.stated), percent(s.fitted),
                            s.held_out > 0 ? percent(s.held_out) : "-"});
  return fmt::format("{}, {}: the fastest reaches {} TFLOP/s{}\n\n{}\n{}", curve.gpu, curve.kernels,
                     tera(curve.best_rate),
                     curve.kernels == "matrix products" ? ", no curve may exceed it" : "",
                     render(constants), render(sources));
}

std::string text_of(const std::vector<FittedCurve>& curves) {
  std::string text;
  for (const FittedCurve& curve : curves) text += (text.empty() ? "" : "\n") + text_of(curve);
  return text;
}

Records records_of(const std::vector<FittedCurve>& curves) {
  const auto constant = [](const CurveConstant& c) -> Records {
    return {{"name", "constant", c.name},
            {"stated", "in the GPU's file, SI", c.stated},
            {"fitted", "that meets the rows best, SI", c.fitted}};
  };
  const auto source = [](const CurveSource& s) -> Records {
    return {{"name", "where rows are from", s.name},
            {"rows", "of it", s.rows},
            {"stated_median_abs_error", "as stated", s.stated, Measure::share},
            {"fitted_median_abs_error", "fitted", s.fitted, Measure::share},
            {"held_out_median_abs_error", "fitted without it", s.held_out, Measure::share}};
  };
  return {{"curves", "one for each kind of kernel",
           list_of(curves, [&](const FittedCurve& curve) -> Records {
             return {{"gpu", "GPU", curve.gpu},
                     {"kernels", "kind", curve.kernels},
                     {"best_flops", "FLOP/s of the fastest", curve.best_rate},
                     {"constants", "of the curve", list_of(curve.constants, constant)},
                     {"sources", "errors by source", list_of(curve.sources, source)}};
           })}};
}

}  // namespace

Records kernels_sample() {
  KernelTimes times;
  times.kernels.emplace_back();
  times.skipped.emplace_back();
  return records_of(times);
}

Records curves_sample() {
  FittedCurve curve;
  curve.constants.emplace_back();
  curve.sources.emplace_back();
  return records_of(std::vector{curve});
}

int kernels_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  std::vector<CsvTable> tables;
  for (const std::string& file : options->words) tables.push_back(read_csv(file));
  if (tables.empty())
    for (const char* file : {"gemm.csv", "attention.csv"})
      tables.push_back(read_csv(line.data + "/scenarios/measured/" + file));
  if (const auto gpu = options->get("fit")) {
    const std::vector<FittedCurve> curves = fit_kernels(line.data, tables, *gpu);
    if (options->has("json"))
      print_result(curves_kind, {}, records_of(curves));
    else
      fmt::print("{}", text_of(curves));
    return exit_code::yes;
  }
  const KernelTimes times = predict_kernels(line.data, tables);
  if (options->has("json"))
    print_result(kernels_kind, {}, records_of(times));
  else
    fmt::print("{}", text_of(times, options->has("rows")));
  return exit_code::yes;
}

}  // namespace stepsim
