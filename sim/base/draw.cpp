#include "sim/base/draw.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace stepsim {
namespace {

std::uint64_t hash(std::uint64_t seed, std::string_view name) {
  std::uint64_t value = scrambled(seed);
  for (const char c : name) value = scrambled(value ^ static_cast<unsigned char>(c));
  return value;
}

// Goes through the weights in even steps, so that few draws stand for all.
const WeightedDraws::One& taken(const Draw& draw) {
  const std::vector<WeightedDraws::One>& all = draw.after->draws;
  double left = (draw.sample + 0.5) / draw.of;
  for (const WeightedDraws::One& one : all) {
    left -= one.weight;
    if (left < 0) return one;
  }
  return all.back();
}

const double* find(const std::vector<std::pair<std::string, double>>& list, std::string_view name) {
  const auto place = std::ranges::find(list, name, &std::pair<std::string, double>::first);
  return place == list.end() ? nullptr : &place->second;
}

}  // namespace

bool WeightedDraws::speaks_of(std::string_view scope, std::string_view name) const {
  return std::ranges::none_of(
      entries, [&](const auto& entry) { return entry.first == scope && entry.second != name; });
}

double quantile(const Draw& draw, std::string_view name) {
  const std::uint64_t own = hash(draw.seed, name);
  // The slice is this sample's rank among all samples in the constant's own order.
  const std::uint64_t mine = scrambled(own ^ draw.sample);
  std::uint32_t slice = 0;
  for (std::uint32_t other = 0; other < draw.of; ++other)
    slice += scrambled(own ^ other) < mine ? 1 : 0;
  const double within = static_cast<double>(scrambled(mine) >> 11) * 0x1p-53;
  return (slice + within) / draw.of;
}

double value_at(const NamedConstant& constant, double quantile) {
  if (!constant.words.empty()) {
    const double count = static_cast<double>(constant.words.size());
    return std::min(std::floor(quantile * count), count - 1);
  }
  if (quantile < 0.5) return constant.low + 2 * quantile * (constant.value - constant.low);
  return constant.value + (2 * quantile - 1) * (constant.high - constant.value);
}

double value_in(const Draw& draw, const NamedConstant& constant, std::string_view name) {
  if (!draw.after) return value_at(constant, quantile(draw, name));
  double place = 0.5;
  if (!draw.centre) {
    place = quantile({draw.after->seed, taken(draw).sample, draw.after->of}, name);
  } else {
    const double* now = find(draw.after->places, name);
    if (now == nullptr || !constant.words.empty()) return constant.value;
    place = *now;
  }
  if (const double* spread = find(draw.after->of_site, name))
    return constant.value * std::exp(*spread * normal_quantile(place));
  return value_at(constant, place);
}

double time_factor(const Draw& draw) {
  if (!draw.after) return 1;
  if (draw.centre) return draw.after->factor;
  const double place = quantile({draw.seed, draw.sample, draw.of}, "another run");
  return taken(draw).factor * std::exp(draw.after->another_run * normal_quantile(place));
}

double normal_quantile(double share) {
  const double inside = std::clamp(share, 1e-6, 1 - 1e-6);
  return 4.91 * (std::pow(inside, 0.14) - std::pow(1 - inside, 0.14));
}

double quantile(std::span<const double> sorted, double share) {
  if (sorted.empty()) return 0;
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace stepsim
