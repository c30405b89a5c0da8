// `fit kernels`: the curves of a GPU that meet measured kernels best.
#include <fmt/format.h>

#include "analysis/studies/fidelity/kernel_tables.hpp"
#include "cli/fits.hpp"
#include "cli/kernel_files.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

std::string tera(double rate) {
  return fmt::format("{:.1f}", rate / 1e12);
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

int fit_kernels(const CommandLine& line, std::span<const std::string> words,
                const Options& options) {
  if (words.empty()) throw UserError("fit kernels: which GPU? `stepsim list gpus` names them");
  const std::vector<FittedCurve> curves =
      fit_kernels(line.data, read_kernel_tables(line.data, words.subspan(1)), words.front());
  fmt::print("{}", options.has("json") ? json_of(curves) : text_of(curves));
  return exit_code::yes;
}

}  // namespace stepsim
