// `kernels`: single kernels, predicted beside measured.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/studies/fidelity/kernel_tables.hpp"
#include "cli/command.hpp"
#include "cli/fits.hpp"
#include "cli/kernel_files.hpp"
#include "cli/options.hpp"
#include "sim/base/json.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs{
    OptionSpec{"fit", "GPU", "is `stepsim fit kernels GPU` now"},
    OptionSpec{"rows", "", "every kernel, not only the families"},
    OptionSpec{"json", "", "for machines"},
};
constexpr Usage usage{
    "stepsim kernels [TABLE.csv ...] [--rows] [--json]",
    "Times of single kernels that somebody measured beside those that the GPU's file gives. "
    "Columns: id, source, hardware, op, dtype, batch, and time_ms or tflops; of matrix products "
    "(op "
    "gemm, batched_gemm, grouped_gemm) M, N, K, layout, groups; of attention (op attention_fwd, "
    "attention_bwd) kernel, queries, keys, heads, head_dim, causal. Without a table: gemm.csv and "
    "attention.csv of scenarios/measured.",
    option_specs, "  stepsim kernels\n  stepsim kernels my.csv --rows\n", 8};

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

}  // namespace

int kernels_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  if (const auto gpu = options->get("fit")) {
    fmt::print(stderr, "note: `stepsim kernels --fit {0}` is now `stepsim fit kernels {0}`\n",
               *gpu);
    std::vector<std::string> words{*gpu};
    words.insert(words.end(), options->words.begin(), options->words.end());
    return fit_kernels(line, words, *options);
  }
  const KernelTimes times =
      predict_kernels(line.data, read_kernel_tables(line.data, options->words));
  fmt::print("{}", options->has("json") ? json_of(times) : text_of(times, options->has("rows")));
  return exit_code::yes;
}

}  // namespace stepsim
