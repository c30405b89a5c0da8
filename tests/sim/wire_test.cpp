#include "sim/base/wire.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;

namespace {

struct Part {
  std::string name;
  std::optional<double> seconds;
  std::vector<std::pair<int, std::string>> notes;
  std::map<std::string, double> figures;

  static auto fields(auto& self) {
    return std::tie(self.name, self.seconds, self.notes, self.figures);
  }
  friend bool operator==(const Part&, const Part&) = default;
};

}  // namespace

TEST_CASE("doubles cross the wire to the same bits", "[sim]") {
  for (const double value :
       {0.1, -0.0, 1e-310, 1e308, std::nextafter(1.0, 2.0), std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    const auto back = from_wire<double>(to_wire(value));
    CHECK(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(value));
  }
}

TEST_CASE("structs, lists, maps and what is missing cross the wire", "[sim]") {
  const std::vector<Part> parts{{"a b\n", 1.5, {{1, "x"}, {2, ""}}, {{"k", 2}, {"l", 3}}},
                                {"", std::nullopt, {}, {}}};
  CHECK(from_wire<std::vector<Part>>(to_wire(parts)) == parts);
  CHECK(from_wire<std::string>(to_wire(std::string("\0x", 2))) == std::string("\0x", 2));
}

TEST_CASE("an answer that is cut off or too long is no answer", "[sim]") {
  const std::string bytes = to_wire(Part{"name", 1.0, {{1, "x"}}, {}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_WITH(from_wire<Part>(bytes.substr(0, size)), "a worker's answer was cut off");
  CHECK_THROWS_WITH(from_wire<Part>(bytes + "x"), "a worker's answer is longer than it should be");
}
