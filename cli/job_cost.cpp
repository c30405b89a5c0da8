#include "cli/job_cost.hpp"

#include <fmt/format.h>

#include <charconv>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

std::optional<double> positive_of(const Options& options, std::string_view name,
                                  std::string_view what) {
  const auto text = options.get(name);
  if (!text) return std::nullopt;
  double value = 0;
  const char* const end = text->data() + text->size();
  const auto [at, failed] = std::from_chars(text->data(), end, value);
  if (failed != std::errc() || at != end || value <= 0 || value > 1e9)
    throw UserError(
        fmt::format("--{}: expected {}, a number above 0, found \"{}\"", name, what, *text));
  return value;
}

double gpu_hours(const JobTime& job) {
  const Seconds time = job.wall.value > 0 ? job.wall : job.step;
  return time.value * job.gpus / 3600;
}

std::optional<double> times(const std::optional<double>& rate, double factor) {
  return rate ? std::optional(*rate * factor) : std::nullopt;
}

// Writes 1.23, 12.3, 1234: three digits, and whole numbers in full.
std::string plain(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

}  // namespace

Rates rates_of(const Options& options) {
  return {positive_of(options, "price", "money for a GPU and an hour"),
          positive_of(options, "power", "watts of a GPU")};
}

std::string cost_text(const Rates& rates, const JobTime& job) {
  if (!rates.price && !rates.power) return "";
  const double hours = gpu_hours(job);
  std::string text = fmt::format("{:<13}{} GPU-hours{}", "cost", plain(hours),
                                 job.wall.value > 0 ? "" : " a step");
  if (rates.price)
    text += fmt::format(", {} at {} each", plain(*rates.price * hours), plain(*rates.price));
  if (rates.power)
    text += fmt::format(", {} kWh at {} W a GPU", plain(*rates.power * hours / 1000),
                        plain(*rates.power));
  if (rates.price && job.tokens_per_second > 0)
    text += fmt::format("; {} for 1e9 tokens",
                        plain(*rates.price * job.gpus / 3600 * 1e9 / job.tokens_per_second));
  return text + "\n";
}

Record cost_record(const Rates& rates, const JobTime& job) {
  const double hours = gpu_hours(job);
  const bool asked = rates.price || rates.power;
  const Records parts{{"of", "the whole job where its length is known, else a step",
                       job.wall.value > 0 ? "job" : "step"},
                      {"gpu_hours", "of it", hours},
                      {"price", "in the money of --price", times(rates.price, hours)},
                      {"energy_kwh", "of it: by --power, or else as predicted",
                       rates.power ? times(rates.power, hours / 1000) : job.kwh}};
  return {"cost", "with --price or --power", asked ? std::optional(parts) : std::nullopt};
}

}  // namespace stepsim
