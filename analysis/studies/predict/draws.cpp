#include "analysis/studies/predict/draws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

using Drawn = std::vector<double>;

// Returns the ranks about their mean, so that no single draw decides.
Drawn ranks_of(std::span<const double> values) {
  Drawn ranks;
  ranks.reserve(values.size());
  const double middle = static_cast<double>(values.size() - 1) / 2;
  for (const double value : values) {
    const auto below = std::ranges::count_if(values, [&](double other) { return other < value; });
    const auto equal = std::ranges::count(values, value);
    ranks.push_back(static_cast<double>(below) + static_cast<double>(equal - 1) / 2 - middle);
  }
  return ranks;
}

double product(const Drawn& a, const Drawn& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Takes `of` out of `from` and leaves the rest.
void take_out(Drawn& from, const Drawn& of) {
  const double square = product(of, of);
  if (square <= 0) return;
  const double share = product(from, of) / square;
  for (std::size_t i = 0; i < from.size(); ++i) from[i] -= share * of[i];
}

double telling(const Drawn& places, const Drawn& figures) {
  const double squares = product(places, places) * product(figures, figures);
  return squares > 1e-9 ? std::abs(product(places, figures)) / std::sqrt(squares) : 0;
}

}  // namespace

Draw draw_number(std::uint32_t number, std::uint64_t seed) {
  return {
      .seed = seed + number / draws_at_once, .sample = number % draws_at_once, .of = draws_at_once};
}

bool may_change(std::uint32_t holds, std::uint32_t draws) {
  if (holds == 0 || holds == draws) return false;
  const double n = draws, p = holds / n;
  constexpr double z = 1.28;  // eight of ten
  const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);
  const auto crosses = [&](double border) {
    return middle - half < border && border < middle + half;
  };
  return crosses(sure) || crosses(1 - sure);
}

Range range_of(std::vector<double> values, double stated) {
  if (values.empty()) return {stated, stated};
  std::ranges::sort(values);
  return {std::min(stated, quantile(values, 0.1)), std::max(stated, quantile(values, 0.9))};
}

std::vector<NamedConstant> telling_constants(std::span<const NamedConstant> constants,
                                             std::span<const double> figures,
                                             std::span<const Draw> draws, std::size_t most) {
  std::vector<Drawn> places(constants.size());
  for (std::size_t c = 0; c < constants.size(); ++c) {
    for (const Draw& draw : draws) places[c].push_back(quantile(draw, constants[c].name));
    places[c] = ranks_of(places[c]);
  }
  Drawn left = ranks_of(figures);
  std::vector<NamedConstant> found;
  std::vector<bool> taken(constants.size());
  for (std::size_t round = 0; round < std::min(most, constants.size()); ++round) {
    std::size_t best = constants.size();
    for (std::size_t c = 0; c < constants.size(); ++c)
      if (!taken[c] && (best == constants.size() ||
                        telling(places[c], left) > telling(places[best], left) + 1e-12))
        best = c;
    taken[best] = true;
    found.push_back(constants[best]);
    take_out(left, places[best]);
  }
  return found;
}

bool is_high_further(const NamedConstant& constant) {
  if (constant.low > 0) return constant.high * constant.low > constant.value * constant.value;
  return constant.high - constant.value > constant.value - constant.low;
}

double Mover::swing() const {
  return std::abs(at_high - at_low);
}

std::vector<Mover> strongest(std::vector<Mover> movers, double stated, std::size_t most) {
  std::erase_if(movers, [&](const Mover& mover) {
    return !(mover.swing() > least_swing * std::abs(stated));
  });
  std::ranges::stable_sort(movers, [](const Mover& a, const Mover& b) {
    return a.swing() != b.swing() ? a.swing() > b.swing() : a.constant.name < b.constant.name;
  });
  if (movers.size() > most)
    movers.erase(movers.begin() + static_cast<std::ptrdiff_t>(most), movers.end());
  return movers;
}

Setting setting_of(const NamedConstant& constant, double value) {
  constexpr std::string_view own = "scenario.";  // stands in the scenario's file under its key
  std::string key = constant.name;
  if (key.starts_with(own)) key.erase(0, own.size());
  if (!constant.words.empty()) return {key, value_text(constant, value)};
  return {key, fmt::format("{} {}", constant.whole ? std::round(value) : value,
                           si_unit(constant.dimension))};
}

bool has_constant(std::span<const NamedConstant> constants, const std::string& name) {
  return holds(constants, name, &NamedConstant::name);
}

bool is_power(const NamedConstant& constant) {
  return constant.dimension == Dimension::watts;
}

bool is_uncertain(std::span<const NamedConstant> constants, const std::string& name) {
  return std::ranges::any_of(constants, [&](const NamedConstant& each) {
    return each.name == name && each.low < each.high;
  });
}

std::optional<Setting> setting_at(std::span<const NamedConstant> constants, const std::string& name,
                                  RangeEnd end) {
  if (!is_uncertain(constants, name)) return std::nullopt;
  const NamedConstant& own = *std::ranges::find(constants, name, &NamedConstant::name);
  return setting_of(own, end == RangeEnd::low ? own.low : own.high);
}

void add_uncertain(std::vector<NamedConstant>& to, std::span<const NamedConstant> from) {
  for (const NamedConstant& constant : from)
    if (constant.low < constant.high && !has_constant(to, constant.name)) to.push_back(constant);
}

}  // namespace stepsim
