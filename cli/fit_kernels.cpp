// `fit kernels` finds the curves of a GPU that meet measured kernels best.
#include <fmt/format.h>

#include <filesystem>

#include "analysis/studies/fidelity/entry_text.hpp"
#include "analysis/studies/fidelity/kernel_tables.hpp"
#include "cli/fits.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

std::string tera(double rate) {
  return fmt::format("{:.1f}", rate / 1e12);
}

std::string number_text(const CurveConstant& c, double value) {
  return value >= 1e6 ? fmt::format("{} {}", tera(value), c.tera) : fmt::format("{:.3g}", value);
}

std::string text_of(const FittedCurve& curve) {
  TextTable constants{{"constant", " stated", " fitted", " between"}};
  for (const CurveConstant& c : curve.constants)
    constants.rows.push_back(
        {c.name, number_text(c, c.stated), number_text(c, c.fitted),
         fmt::format("{} and {}", number_text(c, c.low), number_text(c, c.high))});
  return fmt::format("{}, {}: the fastest reaches {} TFLOP/s{}\n\n{}\n{}", curve.gpu, curve.kernels,
                     tera(curve.best_rate),
                     curve.kernels == "matrix products" ? ", no curve may exceed it" : "",
                     render(constants), source_table(curve.sources));
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
            {"fitted", "that meets the rows best, SI", c.fitted},
            {"low", "the least of fits without a source, or to half of one, SI", c.low},
            {"high", "the most of them, SI", c.high}};
  };
  return {{"curves", "one for each kind of kernel",
           list_of(curves, [&](const FittedCurve& curve) -> Records {
             return {{"gpu", "GPU", curve.gpu},
                     {"kernels", "kind", curve.kernels},
                     {"best_flops", "FLOP/s of the fastest", curve.best_rate},
                     {"constants", "of the curve", list_of(curve.constants, constant)},
                     {"sources", "errors by source", source_list(curve.sources)}};
           })}};
}

// Writes the curves as an entry over the GPU's own.
void write_entry(const std::string& path, const std::vector<FittedCurve>& curves) {
  std::vector<FittedSource> sources;
  for (const FittedCurve& curve : curves)
    sources.insert(sources.end(), curve.sources.begin(), curve.sources.end());
  const std::string name = std::filesystem::path(path).stem().string(), like = curves.front().gpu;
  EntryText entry("fit kernels", name, like, sources);
  const auto text = [](const CurveConstant& c, double value) {
    return value >= 1e6 ? fmt::format("{:.4g} {}", value / 1e12, c.tera)
                        : fmt::format("{:.4g}", value);
  };
  std::vector<std::string> said;  // kernels of attention share some: those of the first stand
  for (const FittedCurve& curve : curves)
    for (const CurveConstant& each : curve.constants) {
      if (holds(said, each.name)) continue;
      said.push_back(each.name);
      entry.add(each.name, text(each, each.fitted), text(each, each.low), text(each, each.high));
    }
  write_file(path, entry.text());
  say(stderr,
      "{} is like {}: use it as DIR/topology/gpus/{}.yaml with `--data DIR`, or in "
      "~/.config/stepsim\n",
      path, like, name);
}

}  // namespace

Records curves_sample() {
  FittedCurve curve;
  curve.constants.emplace_back();
  curve.sources.emplace_back();
  return records_of(std::vector{curve});
}

int fit_kernels(const CommandLine& line, std::span<const std::string> words,
                const Options& options) {
  if (words.empty()) throw UserError("fit kernels: which GPU? `stepsim list gpus` names them");
  const std::vector<FittedCurve> curves =
      fit_kernels(line.data, read_kernel_tables(line.data, words.subspan(1)), words.front());
  if (options.has("json"))
    print_result(curves_kind, {}, records_of(curves));
  else
    say("{}", text_of(curves));
  if (const auto output = options.get("output")) write_entry(*output, curves);
  return exit_code::yes;
}

}  // namespace stepsim
