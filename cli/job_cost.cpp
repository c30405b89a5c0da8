#include "cli/job_cost.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/result.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"
#include "topology/prices.hpp"

namespace stepsim {
namespace {

std::optional<double> positive_of(const Options& options, std::string_view name,
                                  std::string_view what) {
  const auto text = options.get(name);
  if (!text) return std::nullopt;
  const auto value = number_from<double>(*text);
  if (!value || *value <= 0 || *value > 1e9)
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

constexpr ByDrawer<std::string_view> drawer_titles{"GPUs", "hosts", "network"};

double sum_of(const ByDrawer<double>& energy) {
  return std::accumulate(energy.begin(), energy.end(), 0.0);
}

// Returns the rows of causes, the largest first, and behind them that of idle.
std::vector<std::pair<std::string_view, ByDrawer<double>>> rows_of(const Energy& energy) {
  std::vector<std::pair<std::string_view, ByDrawer<double>>> rows;
  for (std::size_t cause = 0; cause < cause_count; ++cause)
    if (sum_of(energy.causes[cause]) > 0)
      rows.emplace_back(cause_names[cause], energy.causes[cause]);
  std::ranges::stable_sort(
      rows, [](const auto& a, const auto& b) { return sum_of(a.second) > sum_of(b.second); });
  rows.emplace_back("idle", energy.idle);
  return rows;
}

RecordList by_cause(const Energy& energy) {
  return list_of(rows_of(energy), [&](const auto& row) {
    Records parts{{"cause", "where the energy goes", row.first},
                  {"energy_j", "energy", sum_of(row.second), Measure::joules},
                  {"share", "share", sum_of(row.second) / energy.total(), Measure::share}};
    for (std::size_t i = 0; i < drawer_names.size(); ++i)
      parts.emplace_back(fmt::format("{}_j", drawer_names[i]), drawer_titles[i], row.second[i],
                         Measure::joules);
    return parts;
  });
}

std::optional<Range> kwh(const Range& energy) {
  return Range{energy.low / joules_per_kwh, energy.high / joules_per_kwh};
}

std::string interval_text(const Goodput& goodput) {
  return goodput.interval == 1 ? "every step" : fmt::format("every {} steps", goodput.interval);
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

std::string kwh_text(Joules energy) {
  const double value = energy.value / joules_per_kwh;
  if (value >= 1e4) return fmt::format("{:.4g} MWh", value / 1000);
  return value >= 1000 ? fmt::format("{:.0f} kWh", value) : fmt::format("{:.3g} kWh", value);
}

std::string energy_text(const Prediction& p, const std::optional<Interval>& interval) {
  if (!p.energy) return "";
  const double total = p.energy->total();
  std::string text = fmt::format("energy       {} a step", to_text(Joules{total}));
  if (interval)
    text += fmt::format("  (likely {} to {})", to_text(Joules{interval->energy.low}),
                        to_text(Joules{interval->energy.high}));
  std::vector<std::string> parts;
  const ByDrawer<double> of = p.energy->by_drawer();
  for (std::size_t i = 0; i < of.size(); ++i)
    if (of[i] > 0)
      parts.push_back(fmt::format("{} {}", drawer_titles[i], percent(of[i] / total, 0)));
  text += fmt::format(": {}", fmt::join(parts, ", "));
  if (p.job_energy.value > 0) text += fmt::format("; {} the whole job", kwh_text(p.job_energy));
  return text + "\n";
}

std::string energy_table(const Prediction& p) {
  if (!p.energy) return "";
  return "\n" + render(table_of(by_cause(*p.energy).items,
                                "cause; energy_j; share; gpus_j; hosts_j; network_j"));
}

Record energy_record(const Prediction& p, const std::optional<Interval>& interval) {
  const auto parts = [&](const Energy& energy) -> Records {
    const bool job = p.job_energy.value > 0;
    const ByDrawer<double> of = energy.by_drawer();
    Records records{{"step_j", "of a step, by all GPUs, hosts and the network between them",
                     energy.total(), Measure::joules},
                    {"step_interval_j", "8 of 10 draws: of a step",
                     interval ? std::optional(interval->energy) : std::nullopt, Measure::joules}};
    for (std::size_t i = 0; i < of.size(); ++i)
      records.emplace_back(fmt::format("{}_j", drawer_names[i]), "of it", of[i], Measure::joules);
    append(records,
           Records{{"standing_w", "what all draw while they do nothing", energy.standing.value},
                   {"job_kwh", "the whole job, or what is left of it",
                    job ? std::optional(p.job_energy.value / joules_per_kwh) : std::nullopt},
                   {"job_interval_kwh", "8 of 10 draws: the whole job",
                    job && interval ? kwh(interval->job_energy) : std::nullopt},
                   {"by_cause", "they add up to the step", by_cause(energy)}});
    return records;
  };
  return parts_if("energy", "what it takes; null: a file does not say what its part draws",
                  p.energy, parts);
}

std::string goodput_text(const Goodput& g) {
  std::string text = fmt::format(
      "{} of the time of a job whose parts fail once in {}: {} writes a checkpoint {}, {} is done "
      "again, {} goes by until steps go on",
      percent(g.useful), to_text(Seconds{g.between}), percent(g.saving), interval_text(g),
      percent(g.lost), percent(g.down));
  if (g.waiting > 0) text += fmt::format(", {} waits for nodes or a place", percent(g.waiting));
  if (g.slower > 0) text += fmt::format(", {} goes to fewer nodes", percent(g.slower));
  if (g.wall.value > 0)
    text += fmt::format("; {:.3g} failures in the mean, and eight of ten such jobs take {} to {}",
                        g.failures, to_text(g.low), to_text(g.high));
  return text;
}

std::string goodput_in_short(const Goodput& g) {
  return fmt::format("goodput {} with a failure once in {}, a checkpoint {}", percent(g.useful),
                     to_text(Seconds{g.between}), interval_text(g));
}

Records goodput_records(const std::optional<Goodput>& goodput) {
  const auto of = [&](auto Goodput::*member) {
    return goodput ? std::optional((*goodput).*member) : std::nullopt;
  };
  const auto wall = [&](Seconds Goodput::*member) {
    return goodput && goodput->wall.value > 0 ? std::optional(((*goodput).*member).value / 3600)
                                              : std::nullopt;
  };
  return {
      {"goodput", "share of a run's time, with failures", of(&Goodput::useful), Measure::share},
      {"saving_share", "of it: checkpoints", of(&Goodput::saving), Measure::share},
      {"lost_share", "of it: steps done again", of(&Goodput::lost), Measure::share},
      {"down_share", "of it: until steps go on", of(&Goodput::down), Measure::share},
      {"waiting_share", "of it: for nodes or a place", of(&Goodput::waiting), Measure::share},
      {"slower_share", "of it: steps on fewer nodes", of(&Goodput::slower), Measure::share},
      {"save_steps", "between checkpoints", of(&Goodput::interval)},
      {"failures", "of the job, in the mean", of(&Goodput::failures)},
      {"wall_low_h", "one job in ten, by luck, ends before", wall(&Goodput::low), Measure::hours},
      {"wall_high_h", "one job in ten, by luck, ends after", wall(&Goodput::high), Measure::hours}};
}

}  // namespace stepsim
