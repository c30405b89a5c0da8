// A quantity has a unit: a number that knows what it measures, and its text form.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace stepsim {

inline constexpr double bytes_16 = 2;  // of a 16-bit number
inline constexpr double bytes_32 = 4;

template <class Tag>
struct Quantity {
  double value{};

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double k) { return {a.value * k}; }
  friend constexpr Quantity operator*(double k, Quantity a) { return {a.value * k}; }
  friend constexpr Quantity operator/(Quantity a, double k) { return {a.value / k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
};

// Each tag names its dimension as the parser and the messages know it.
struct SecondsTag {};
struct BytesTag {};
struct BytesPerSecondTag {};
struct FlopsTag {};
struct FlopsPerSecondTag {};
struct WattsTag {};
struct JoulesTag {};
struct RatioTag {};

using Seconds = Quantity<SecondsTag>;
using Bytes = Quantity<BytesTag>;
using BytesPerSecond = Quantity<BytesPerSecondTag>;
using Flops = Quantity<FlopsTag>;  // doubles on purpose: a long run exceeds 64-bit integers
using FlopsPerSecond = Quantity<FlopsPerSecondTag>;
using Watts = Quantity<WattsTag>;
using Joules = Quantity<JoulesTag>;
using Ratio = Quantity<RatioTag>;  // dimensionless

constexpr Seconds operator/(Bytes b, BytesPerSecond r) {
  return {b.value / r.value};
}
constexpr Bytes operator*(BytesPerSecond r, Seconds t) {
  return {r.value * t.value};
}
constexpr BytesPerSecond operator/(Bytes b, Seconds t) {
  return {b.value / t.value};
}
constexpr Joules operator*(Watts p, Seconds t) {
  return {p.value * t.value};
}
constexpr Seconds operator/(Flops f, FlopsPerSecond r) {
  return {f.value / r.value};
}

enum class Dimension {
  seconds,
  bytes,
  bytes_per_second,
  flops,
  flops_per_second,
  watts,
  joules,
  ratio
};

template <class Q>
constexpr Dimension dimension_of();
template <>
constexpr Dimension dimension_of<Seconds>() {
  return Dimension::seconds;
}
template <>
constexpr Dimension dimension_of<Bytes>() {
  return Dimension::bytes;
}
template <>
constexpr Dimension dimension_of<BytesPerSecond>() {
  return Dimension::bytes_per_second;
}
template <>
constexpr Dimension dimension_of<Flops>() {
  return Dimension::flops;
}
template <>
constexpr Dimension dimension_of<FlopsPerSecond>() {
  return Dimension::flops_per_second;
}
template <>
constexpr Dimension dimension_of<Watts>() {
  return Dimension::watts;
}
template <>
constexpr Dimension dimension_of<Joules>() {
  return Dimension::joules;
}
template <>
constexpr Dimension dimension_of<Ratio>() {
  return Dimension::ratio;
}

// "a bandwidth", as a sentence needs it.
std::string_view describe(Dimension dimension);
// Returns what a correct value looks like: "100 GB/s".
std::string_view example(Dimension dimension);
// Returns the unit a trace stores: "B/s"; "" for a ratio.
std::string_view si_unit(Dimension dimension);

struct ParsedQuantity {
  double value{};
  Dimension dimension{};
};

// Reads "46 GB/s" as 46e9, bytes_per_second. A bare number is a ratio. Returns nothing if the text
// is no quantity or its unit is unknown. GB is 1e9 bytes, GiB is 2^30.
std::optional<ParsedQuantity> parse_quantity(std::string_view text);

// Lists every unit the parser knows, for hints.
std::string known_units(Dimension dimension);

// These write "46.0 GB/s", "1.25 ms", "80.0 GiB": three significant digits and the unit a person
// reads.
std::string to_text(Seconds value);
std::string to_text(Bytes value);
std::string to_text(BytesPerSecond value);
std::string to_text(Flops value);
std::string to_text(FlopsPerSecond value);
std::string to_text(Joules value);
std::string to_text(double value, Dimension dimension);

// Writes binary sizes as message-size tables do: "64 KiB", "1 GiB"; exact sizes only, else decimal.
std::string size_text(double bytes);

}  // namespace stepsim
