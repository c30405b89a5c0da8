// Draws of constants: when there are enough of them, and which constants they point at.
#include "analysis/studies/predict/draws.hpp"

#include "tests/support/catch.hpp"

namespace stepsim {
namespace {

NamedConstant constant(std::string name) {
  NamedConstant c;
  c.name = std::move(name);
  c.dimension = Dimension::ratio;
  c.value = 1;
  c.low = 0.5;
  c.high = 2;
  return c;
}

std::vector<Draw> draws(std::uint32_t count) {
  std::vector<Draw> list;
  for (std::uint32_t i = 0; i < count; ++i) list.push_back(draw_number(i, 1));
  return list;
}

}  // namespace

TEST_CASE("draws that agree are enough, draws about a border are not", "[analysis]") {
  CHECK_FALSE(may_change(8, 8));
  CHECK_FALSE(may_change(0, 8));
  CHECK_FALSE(may_change(12, 24));  // far from nine of ten either way
  CHECK(may_change(7, 8));
  CHECK(may_change(1, 8));
  CHECK(may_change(22, 24));
}

TEST_CASE("a range holds eight draws of ten and the stated value", "[analysis]") {
  const Range inside = range_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 5);
  CHECK(inside.low == 2);
  CHECK(inside.high == 10);
  CHECK(range_of({1, 2, 3}, 40).high == 40);
  CHECK(range_of({}, 7).low == 7);
}

TEST_CASE("draws point at the constants that a figure is made of, the larger part first",
          "[analysis]") {
  std::vector<NamedConstant> constants;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"})
    constants.push_back(constant(name));
  const std::vector<Draw> all = draws(24);
  std::vector<double> figures;
  for (const Draw& draw : all)
    figures.push_back(10 * quantile(draw, "f") - 5 * quantile(draw, "c"));
  const auto found = telling_constants(constants, figures, all, 2);
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == "f");
  CHECK(found[1].name == "c");
}

TEST_CASE("movers come by their swing, and those that move nothing are left out", "[analysis]") {
  const auto list = strongest(
      {{constant("a"), 99, 101.5}, {constant("b"), 120, 80}, {constant("c"), 100, 100.1}}, 100, 5);
  REQUIRE(list.size() == 2);
  CHECK(list[0].constant.name == "b");
  CHECK(list[1].constant.name == "a");
}

}  // namespace stepsim
