// `kernels`: single kernels, predicted beside measured, and the curve that would meet them best.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/studies/fidelity/kernel_tables.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "sim/base/json.hpp"
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

TextTable row_table(const std::vector<TimedKernel>& kernels) {
  TextTable table{{"GPU", "kernel", "M", "N", "K", "measured TFLOP/s", "predicted", "error", "row"},
                  {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::right, Align::left},
                  {}};
  for (const TimedKernel& k : kernels)
    table.rows.push_back({k.gpu, k.kind, fmt::format("{}", k.work.rows),
                          fmt::format("{}", k.work.width), fmt::format("{}", k.work.depth),
                          tera(k.work.flops / k.measured), tera(k.work.flops / k.predicted),
                          signed_percent(k.error()), k.id});
  return table;
}

TextTable family_table(const std::vector<KernelFamily>& families) {
  TextTable table{{"family", "rows", "median |error|", "90 %", "signed mean", "worst", ""},
                  {Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::left},
                  {}};
  for (const KernelFamily& f : families)
    table.rows.push_back({f.name, fmt::format("{}", f.rows), percent(f.median), percent(f.p90),
                          signed_percent(f.signed_mean), signed_percent(f.worst_error), f.worst});
  return table;
}

std::string text_of(const KernelTimes& times, bool rows) {
  std::string text = rows ? render(row_table(times.kernels)) + "\n" : "";
  text += render(family_table(families_of(times.kernels)));
  TextTable skipped{{"left out", "why"}, {Align::left, Align::left}, {}};
  for (const SkippedKernel& row : times.skipped) skipped.rows.push_back({row.id, row.reason});
  if (!skipped.rows.empty()) text += "\n" + render(skipped);
  return text + fmt::format("\n{} of {} rows are predicted; errors are those of the time\n",
                            times.kernels.size(), times.kernels.size() + times.skipped.size());
}

std::string json_of(const KernelTimes& times) {
  JsonWriter json;
  json.begin_object().key("rows").begin_array();
  for (const TimedKernel& k : times.kernels)
    json.begin_object()
        .member("id", k.id)
        .member("gpu", k.gpu)
        .member("kernel", k.kind)
        .member("measured_s", k.measured)
        .member("predicted_s", k.predicted)
        .member("error", k.error())
        .end_object();
  json.end_array().key("families").begin_array();
  for (const KernelFamily& f : families_of(times.kernels))
    json.begin_object()
        .member("name", f.name)
        .member("rows", static_cast<double>(f.rows))
        .member("median_abs_error", f.median)
        .member("p90_abs_error", f.p90)
        .member("signed_mean", f.signed_mean)
        .end_object();
  json.end_array().key("left_out").begin_array();
  for (const SkippedKernel& row : times.skipped)
    json.begin_object().member("id", row.id).member("reason", row.reason).end_object();
  json.end_array().end_object();
  return json.take();
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

void add(JsonWriter& json, const FittedCurve& curve) {
  json.begin_object()
      .member("gpu", curve.gpu)
      .member("kernels", curve.kernels)
      .member("best_flops", curve.best_rate);
  json.key("constants").begin_array();
  for (const CurveConstant& c : curve.constants)
    json.begin_object()
        .member("name", c.name)
        .member("stated", c.stated)
        .member("fitted", c.fitted)
        .end_object();
  json.end_array().key("sources").begin_array();
  for (const CurveSource& s : curve.sources)
    json.begin_object()
        .member("name", s.name)
        .member("rows", static_cast<double>(s.rows))
        .member("stated_median_abs_error", s.stated)
        .member("fitted_median_abs_error", s.fitted)
        .member("held_out_median_abs_error", s.held_out)
        .end_object();
  json.end_array().end_object();
}

std::string text_of(const std::vector<FittedCurve>& curves) {
  std::string text;
  for (const FittedCurve& curve : curves) text += (text.empty() ? "" : "\n") + text_of(curve);
  return text;
}

std::string json_of(const std::vector<FittedCurve>& curves) {
  JsonWriter json;
  json.begin_object().key("curves").begin_array();
  for (const FittedCurve& curve : curves) add(json, curve);
  json.end_array().end_object();
  return json.take();
}

}  // namespace

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
    fmt::print("{}", options->has("json") ? json_of(curves) : text_of(curves));
    return exit_code::yes;
  }
  const KernelTimes times = predict_kernels(line.data, tables);
  fmt::print("{}", options->has("json") ? json_of(times) : text_of(times, options->has("rows")));
  return exit_code::yes;
}

}  // namespace stepsim
