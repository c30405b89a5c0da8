#include "sim/base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

struct Unit {
  std::string_view name;
  double factor;
  Dimension dimension;
};

constexpr double kib = 1024, mib = kib * 1024, gib = mib * 1024, tib = gib * 1024;

// Units stand largest first within a dimension: to_text takes the first that leaves a number of one
// or more.
constexpr std::array units{
    Unit{"h", 3600, Dimension::seconds},
    Unit{"min", 60, Dimension::seconds},
    Unit{"s", 1, Dimension::seconds},
    Unit{"ms", 1e-3, Dimension::seconds},
    Unit{"us", 1e-6, Dimension::seconds},
    Unit{"ns", 1e-9, Dimension::seconds},
    Unit{"TB", 1e12, Dimension::bytes},
    Unit{"GB", 1e9, Dimension::bytes},
    Unit{"MB", 1e6, Dimension::bytes},
    Unit{"kB", 1e3, Dimension::bytes},
    Unit{"B", 1, Dimension::bytes},
    Unit{"TiB", tib, Dimension::bytes},
    Unit{"GiB", gib, Dimension::bytes},
    Unit{"MiB", mib, Dimension::bytes},
    Unit{"KiB", kib, Dimension::bytes},
    Unit{"TB/s", 1e12, Dimension::bytes_per_second},
    Unit{"GB/s", 1e9, Dimension::bytes_per_second},
    Unit{"MB/s", 1e6, Dimension::bytes_per_second},
    Unit{"kB/s", 1e3, Dimension::bytes_per_second},
    Unit{"B/s", 1, Dimension::bytes_per_second},
    Unit{"GiB/s", gib, Dimension::bytes_per_second},
    Unit{"PFLOP", 1e15, Dimension::flops},
    Unit{"TFLOP", 1e12, Dimension::flops},
    Unit{"GFLOP", 1e9, Dimension::flops},
    Unit{"MFLOP", 1e6, Dimension::flops},
    Unit{"FLOP", 1, Dimension::flops},
    Unit{"PFLOP/s", 1e15, Dimension::flops_per_second},
    Unit{"TFLOP/s", 1e12, Dimension::flops_per_second},
    Unit{"GFLOP/s", 1e9, Dimension::flops_per_second},
    Unit{"MFLOP/s", 1e6, Dimension::flops_per_second},
    Unit{"FLOP/s", 1, Dimension::flops_per_second},
    Unit{"kW", 1e3, Dimension::watts},
    Unit{"W", 1, Dimension::watts},
    Unit{"GJ", 1e9, Dimension::joules},
    Unit{"MJ", 1e6, Dimension::joules},
    Unit{"kJ", 1e3, Dimension::joules},
    Unit{"J", 1, Dimension::joules},
    Unit{"MWh", 3.6e9, Dimension::joules},
    Unit{"kWh", 3.6e6, Dimension::joules},
};

struct DimensionText {
  Dimension dimension;
  std::string_view described, example, si;
};
constexpr std::array dimensions{
    DimensionText{Dimension::seconds, "a time", "25 us", "s"},
    DimensionText{Dimension::bytes, "a size", "80 GB", "B"},
    DimensionText{Dimension::bytes_per_second, "a bandwidth", "25 GB/s", "B/s"},
    DimensionText{Dimension::flops, "an amount of work", "3 TFLOP", "FLOP"},
    DimensionText{Dimension::flops_per_second, "a rate of work", "989 TFLOP/s", "FLOP/s"},
    DimensionText{Dimension::watts, "a power", "700 W", "W"},
    DimensionText{Dimension::joules, "an energy", "3 MJ", "J"},
    DimensionText{Dimension::ratio, "a plain number", "0.85", ""},
};

const DimensionText& text_of(Dimension dimension) {
  return dimensions[static_cast<std::size_t>(dimension)];
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Returns whether the unit is read, but never written.
bool is_only_read(const Unit& unit) {
  return unit.name.find("iB") != std::string_view::npos || unit.name.ends_with("Wh");
}

// Minutes and hours begin at two of them: 90 s reads better than 1.5 min.
bool reaches(const Unit& unit, double magnitude) {
  const bool clock = unit.name == "h" || unit.name == "min";
  return magnitude >= unit.factor * (clock ? 2 : 0.9995);
}

// Writes three significant digits without an exponent for what people read: 0.125, 1.25, 12.5, 125,
// 1250.
std::string three_digits(double value) {
  const double size = std::fabs(value);
  if (size == 0) return "0";
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.9995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

// YAML and Python set the thousands of a number apart: 500_000.
std::string without_separators(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '_' || i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) ||
        !is_digit(text[i + 1]))
      plain += text[i];
  return plain;
}

}  // namespace

std::string_view describe(Dimension dimension) {
  return text_of(dimension).described;
}
std::string_view example(Dimension dimension) {
  return text_of(dimension).example;
}
std::string_view si_unit(Dimension dimension) {
  return text_of(dimension).si;
}

std::optional<ParsedQuantity> parse_quantity(std::string_view text) {
  if (text.find('_') != std::string_view::npos)
    if (const std::string plain = without_separators(text); plain != text) {
      const auto number = parse_quantity(plain);
      return number && number->dimension == Dimension::ratio ? number : std::nullopt;
    }
  text = trim(text);
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range)
    number = std::strtod(std::string(text).c_str(), nullptr);  // infinite, or as good as zero
  else if (error != std::errc())
    return std::nullopt;
  const std::string_view unit = trim(text.substr(static_cast<std::size_t>(rest - text.data())));
  if (unit.empty()) return ParsedQuantity{number, Dimension::ratio};
  for (const Unit& known : units)
    if (known.name == unit) return ParsedQuantity{number * known.factor, known.dimension};
  return std::nullopt;
}

std::string known_units(Dimension dimension) {
  std::string list;
  for (const Unit& unit : units) {
    if (unit.dimension != dimension) continue;
    if (!list.empty()) list += ", ";
    list += unit.name;
  }
  return list;
}

std::string to_text(double value, Dimension dimension) {
  if (dimension == Dimension::ratio || value == 0 || !std::isfinite(value)) {
    const std::string_view unit = si_unit(dimension);
    return fmt::format("{}{}{}", three_digits(value), unit.empty() ? "" : " ", unit);
  }
  // The largest unit that leaves a number of one or more, else the smallest there is.
  Unit chosen{.name = "", .factor = HUGE_VAL, .dimension = dimension};
  for (const Unit& unit : units)
    if (unit.dimension == dimension && !is_only_read(unit) && !reaches(chosen, std::fabs(value)))
      chosen = unit;
  return fmt::format("{} {}", three_digits(value / chosen.factor), chosen.name);
}

std::string to_text(Seconds value) {
  return to_text(value.value, Dimension::seconds);
}
std::string to_text(Bytes value) {
  return to_text(value.value, Dimension::bytes);
}
std::string to_text(BytesPerSecond value) {
  return to_text(value.value, Dimension::bytes_per_second);
}
std::string to_text(Flops value) {
  return to_text(value.value, Dimension::flops);
}
std::string to_text(FlopsPerSecond value) {
  return to_text(value.value, Dimension::flops_per_second);
}
std::string to_text(Joules value) {
  return to_text(value.value, Dimension::joules);
}

std::string size_text(double bytes) {
  constexpr std::array binary{std::pair{tib, "TiB"}, std::pair{gib, "GiB"}, std::pair{mib, "MiB"},
                              std::pair{kib, "KiB"}};
  constexpr double most = 9999;  // 4 GB is a multiple of KiB, but nobody wrote it as one
  for (const auto& [factor, name] : binary)
    if (bytes >= factor && bytes <= most * factor && std::fmod(bytes, factor) == 0)
      return fmt::format("{:.0f} {}", bytes / factor, name);
  if (bytes < kib && std::fmod(bytes, 1) == 0) return fmt::format("{:.0f} B", bytes);
  return to_text(Bytes{bytes});
}

}  // namespace stepsim
