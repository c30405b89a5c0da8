#include "cli/job_cost.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/readable.hpp"
#include "topology/prices.hpp"

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

// Holds how much of the job the money buys.
struct Bought {
  double gpu_hours = 0, steps = 0, tokens = 0;
  Seconds time{};
};

Bought bought_with(const Rates& rates, const JobTime& job) {
  Bought bought{.gpu_hours = *rates.budget / *rates.price};
  bought.time = {bought.gpu_hours * 3600 / job.gpus};
  bought.steps = std::floor(bought.time / job.step_with_all());
  bought.tokens = bought.steps * job.step.value * job.tokens_per_second;
  return bought;
}

}  // namespace

Rates rates_of(const Options& options, const Catalogue& data, const Cluster& cluster) {
  Rates rates{.price = {}, .power = positive_of(options, "power", "watts of a GPU")};
  const std::string said = options.get("price").value_or("");
  if (!said.empty() && is_letter(said.front())) {
    const Price price = price_called(data, said, cluster);
    rates.price = price.rate;
    rates.offer = fmt::format("{} {}, {}", price.provider, price.kind, price.date);
  } else {
    rates.price = positive_of(options, "price", "money for a GPU and an hour");
  }
  rates.budget = positive_of(options, "budget-money", "money");
  if (rates.budget && !rates.price)
    throw UserError("--budget-money: needs a --price for a GPU and an hour");
  return rates;
}

SweepPrice sweep_price_of(const Options& options, const Catalogue& data, const Cluster& base,
                          bool other_gpus) {
  const std::string said = options.get("price").value_or("");
  SweepPrice price{.said = said, .budget = positive_of(options, "budget-money", "money")};
  if (said.empty() || !is_letter(said.front()) || !other_gpus) {
    const std::optional<double> rate = rates_of(options, data, base).price;
    if (rate) price.of = [rate](const Cluster&) { return rate; };
    return price;
  }
  price_of(data, said, base);
  price.of = [data, said](const Cluster& cluster) {
    const std::optional<Price> offer = price_of(data, said, cluster);
    return offer ? std::optional(offer->rate) : std::nullopt;
  };
  return price;
}

std::string cost_text(const Rates& rates, const JobTime& job) {
  if (!rates.price && !rates.power) return "";
  const double hours = gpu_hours(job);
  std::string text = fmt::format("{:<13}{} GPU-hours{}", "cost", plain(hours),
                                 job.wall.value > 0 ? "" : " a step");
  if (rates.price)
    text += fmt::format(", {} at {} each{}", plain(*rates.price * hours), plain(*rates.price),
                        rates.offer.empty() ? "" : fmt::format(" ({})", rates.offer));
  if (rates.power)
    text += fmt::format(", {} kWh at {} W a GPU", plain(*rates.power * hours / 1000),
                        plain(*rates.power));
  if (rates.price && job.tokens_per_second > 0)
    text += fmt::format("; {} for 1e9 tokens",
                        plain(*rates.price * job.gpus / 3600 * 1e9 / job.tokens_per_second));
  if (rates.budget) {
    const Bought bought = bought_with(rates, job);
    text += fmt::format("\n{:<13}{} buys {} GPU-hours, {}: {} steps, {:.3g} tokens", "",
                        plain(*rates.budget), plain(bought.gpu_hours), to_text(bought.time),
                        plain(bought.steps), bought.tokens);
  }
  return text + "\n";
}

Record cost_record(const Rates& rates, const JobTime& job) {
  const double hours = gpu_hours(job);
  const bool asked = rates.price || rates.power;
  const Records parts{{"of", "the whole job where its length is known, else a step",
                       job.wall.value > 0 ? "job" : "step"},
                      {"gpu_hours", "of it", hours},
                      {"price", "in the money of --price", times(rates.price, hours)},
                      {"offer", "whose price it is, of which kind and day; null: the user's own",
                       rates.offer.empty() ? std::nullopt : std::optional(rates.offer)},
                      {"budget_steps", "that --budget-money buys",
                       rates.budget ? std::optional(bought_with(rates, job).steps) : std::nullopt},
                      {"budget_tokens", "likewise",
                       rates.budget ? std::optional(bought_with(rates, job).tokens) : std::nullopt},
                      {"energy_kwh", "of it: by --power, or else as predicted",
                       rates.power ? times(rates.power, hours / 1000) : job.kwh}};
  return {"cost", "with --price or --power", asked ? std::optional(parts) : std::nullopt};
}

}  // namespace stepsim
