// `kernels` prints single kernels, predicted beside measured.
#include <fmt/format.h>

#include "analysis/studies/fidelity/kernel_tables.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

RecordList row_list(const PredictedKernels& times) {
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

RecordList family_list(const PredictedKernels& times) {
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

RecordList skipped_list(const PredictedKernels& times) {
  return list_of(times.skipped, [](const SkippedKernel& row) -> Records {
    return {{"id", "left out", row.id}, {"reason", "why", row.reason}};
  });
}

std::string text_of(const PredictedKernels& times, bool rows) {
  std::string text;
  if (rows)
    text += render(table_of(row_list(times).items,
                            "gpu; kernel; m; n; k; measured_flops; predicted_flops; error; id")) +
            "\n";
  text += render(
      table_of(family_list(times).items,
               "name; rows; median_abs_error; p90_abs_error; signed_mean; worst_error; worst="));
  if (!times.skipped.empty())
    text += "\n" + render(table_of(skipped_list(times).items, "id; reason"));
  return text + fmt::format("\n{} of {} rows are predicted; errors are those of the time\n",
                            times.kernels.size(), times.kernels.size() + times.skipped.size());
}

Records records_of(const PredictedKernels& times) {
  return {{"rows", "one for each kernel", row_list(times)},
          {"families", "errors by GPU and kind", family_list(times)},
          {"left_out", "rows without a prediction", skipped_list(times)}};
}

}  // namespace

Records kernels_sample() {
  PredictedKernels times;
  times.kernels.emplace_back();
  times.skipped.emplace_back();
  return records_of(times);
}

int kernels_command(const CommandLine& line) {
  const auto options = parse("kernels", line.words);
  if (!options) return exit_code::yes;
  const PredictedKernels times =
      predict_kernels(line.data, read_kernel_tables(line.data, options->words));
  if (options->has("json"))
    print_result(kernels_kind, {}, records_of(times));
  else
    say("{}", text_of(times, options->has("rows")));
  return exit_code::yes;
}

}  // namespace stepsim
