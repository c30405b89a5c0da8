#include "sim/base/draw.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/scramble.hpp"

namespace stepsim {
namespace {

std::uint64_t hash(std::uint64_t seed, std::string_view name) {
  std::uint64_t value = scrambled(seed);
  for (const char c : name) value = scrambled(value ^ static_cast<unsigned char>(c));
  return value;
}

}  // namespace

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

}  // namespace stepsim
