#include "sim/base/units.hpp"

#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"

using namespace stepsim;
using Catch::WithinRel;

namespace {

constexpr double kibi = 1024, mebi = kibi * kibi, gibi = mebi * kibi, tebi = gibi * kibi;

ParsedQuantity parsed(std::string_view text) {
  CAPTURE(text);
  const auto quantity = parse_quantity(text);
  REQUIRE(quantity.has_value());
  return *quantity;
}

}  // namespace

TEST_CASE("quantities combine only as physics does", "[sim]") {
  const Bytes size{6e9};
  const BytesPerSecond rate{2e9};
  CHECK(size / rate == Seconds{6e9 / 2e9});
  CHECK(rate * (size / rate) == size);
  CHECK(size / (size / rate) == rate);
  CHECK(Flops{4e12} / FlopsPerSecond{2e12} == Seconds{2});
  CHECK(size / Bytes{2e9} == 3.0);
  CHECK(2 * size - size == size);
  CHECK(size / 2 < size);
  Seconds sum{1};
  sum += Seconds{2};
  CHECK(sum == Seconds{3});
}

TEST_CASE("every unit a message offers is one the parser knows", "[sim]") {
  const auto dimension =
      GENERATE(Dimension::seconds, Dimension::bytes, Dimension::bytes_per_second, Dimension::flops,
               Dimension::flops_per_second, Dimension::watts, Dimension::joules);
  std::string list = known_units(dimension) + ", ";
  int units = 0;
  for (std::size_t end = 0; (end = list.find(", ")) != std::string::npos; list.erase(0, end + 2)) {
    const auto quantity = parsed("2 " + list.substr(0, end));
    CHECK(quantity.dimension == dimension);
    CHECK(quantity.value > 0);
    ++units;
  }
  CHECK(units >= 2);
  CHECK(parsed(example(dimension)).dimension == dimension);
  CHECK(parsed("1 " + std::string(si_unit(dimension))).value == 1);
}

TEST_CASE("GB is a power of ten and GiB a power of two", "[sim]") {
  CHECK(parsed("1 kB").value == 1e3);
  CHECK(parsed("1 GB").value == 1e9);
  CHECK(parsed("1 TB").value == 1e12);
  CHECK(parsed("1 KiB").value == kibi);
  CHECK(parsed("1 MiB").value == mebi);
  CHECK(parsed("1 GiB").value == gibi);
  CHECK(parsed("1 TiB").value == tebi);
  CHECK(parsed("1 GiB/s").value == gibi);
}

TEST_CASE("a quantity may be written with and without space, sign and exponent", "[sim]") {
  const double rate = 25e9;
  const auto text = GENERATE("25 GB/s", "25GB/s", " 25  GB/s\t", "+25 GB/s", "2.5e1 GB/s",
                             "25e9 B/s", "25. GB/s", "0.025 TB/s", "25000 MB/s");
  CAPTURE(text);
  CHECK_THAT(parsed(text).value, WithinRel(rate, 1e-15));
  CHECK(parsed(text).dimension == Dimension::bytes_per_second);
}

TEST_CASE("thousands may be set apart as YAML and Python do", "[sim]") {
  CHECK(parse_quantity("500_000")->value == 500000);
  CHECK(parse_quantity("1_000.5")->value == 1000.5);
  for (const char* other : {"_500", "500_", "5__0", "1._5"}) CHECK_FALSE(parse_quantity(other));
}

TEST_CASE("a bare number is a ratio", "[sim]") {
  CHECK(parsed("0.85").dimension == Dimension::ratio);
  CHECK(parsed("0.85").value == 0.85);
  CHECK(parsed("-3").value == -3);
}

TEST_CASE("what is no number with a known unit is no quantity", "[sim]") {
  const auto text =
      GENERATE("", " ", "GB/s", "fast", "25 gb/s", "25 GB / s", "25 GB/s/s", "1,5 GB", "1_000 B",
               "0x10 B", "--5 s", "+-5 s", "-+5 s", "+ 5 s", "5 s 5 s", "1e", "25 Gbit/s", "5 µs");
  CAPTURE(text);
  CHECK_FALSE(parse_quantity(text).has_value());
}

TEST_CASE("a number beyond the range of a double is infinite, below it as good as zero", "[sim]") {
  CHECK(parsed("1e999 GB/s").value == std::numeric_limits<double>::infinity());
  CHECK(parsed("-1e999 GB/s").value == -std::numeric_limits<double>::infinity());
  CHECK(parsed("1e999").dimension == Dimension::ratio);
  CHECK(std::fabs(parsed("1e-999 s").value) < std::numeric_limits<double>::min());
  CHECK(std::isnan(parsed("nan s").value));
  CHECK(std::isinf(parsed("inf s").value));
}

TEST_CASE("a text has three digits and the unit a person reads", "[sim]") {
  CHECK(to_text(BytesPerSecond{46e9}) == "46.0 GB/s");
  CHECK(to_text(Seconds{1.25e-3}) == "1.25 ms");
  CHECK(to_text(Bytes{80e9}) == "80.0 GB");
  CHECK(to_text(Flops{3.14159e15}) == "3.14 PFLOP");
  CHECK(to_text(FlopsPerSecond{989e12}) == "989 TFLOP/s");
  CHECK(to_text(700, Dimension::watts) == "700 W");
  CHECK(to_text(3.6e6, Dimension::joules) == "3.60 MJ");
  CHECK(parse_quantity("104 MWh")->value == 104 * 3.6e9);
  CHECK(to_text(0.125, Dimension::ratio) == "0.125");
  CHECK(to_text(Seconds{-2e-6}) == "-2.00 us");
  CHECK(to_text(Seconds{0}) == "0 s");
  CHECK(to_text(Bytes{5e18}) == "5000000 TB");
}

TEST_CASE("a text never shows four digits where the next unit would do", "[sim]") {
  CHECK(to_text(Seconds{0.9994}) == "999 ms");
  CHECK(to_text(Seconds{0.99951}) == "1.00 s");
  CHECK(to_text(Bytes{999.4e6}) == "999 MB");
  CHECK(to_text(Bytes{999.6e6}) == "1.00 GB");
  CHECK(to_text(Seconds{9.996}) == "10.0 s");
  CHECK(to_text(Seconds{99.96}) == "100 s");
}

TEST_CASE("minutes begin at two minutes, hours at two hours", "[sim]") {
  const double minute = 60, hour = 60 * minute;
  CHECK(to_text(Seconds{1.5 * minute}) == "90.0 s");
  CHECK(to_text(Seconds{2 * minute}) == "2.00 min");
  CHECK(to_text(Seconds{hour}) == "60.0 min");
  CHECK(to_text(Seconds{38 * hour}) == "38.0 h");
}

TEST_CASE("what a text shows can be read back to three digits", "[sim]") {
  const auto dimension = GENERATE(Dimension::seconds, Dimension::bytes, Dimension::bytes_per_second,
                                  Dimension::flops_per_second);
  for (double value = 1.234e-6; value < 1e15; value *= 7.3) {
    if (dimension != Dimension::seconds && value < 1) continue;
    const std::string text = to_text(value, dimension);
    CAPTURE(value, text);
    CHECK_THAT(parsed(text).value, WithinRel(value, 0.0051));
    CHECK(parsed(text).dimension == dimension);
  }
}

TEST_CASE("sizes that are whole binary units are written so, others in decimal", "[sim]") {
  CHECK(size_text(64 * kibi) == "64 KiB");
  CHECK(size_text(gibi) == "1 GiB");
  CHECK(size_text(3 * tebi) == "3 TiB");
  CHECK(size_text(1536 * kibi) == "1536 KiB");
  CHECK(size_text(1e6) == "1.00 MB");
  CHECK(size_text(4e9) == "4.00 GB");
  CHECK(size_text(8) == "8 B");
  CHECK(size_text(0) == "0 B");
}
