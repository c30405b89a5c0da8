// Errors that grow are noticed, and so are rows that are no longer predicted.
#include "analysis/studies/fidelity/recorded_errors.hpp"

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;

namespace {

RowFamily family(const char* name, double median, std::size_t right) {
  RowFamily f;
  f.name = name;
  f.rows = 20;
  f.median = median;
  f.p90 = 3 * median;
  f.fits = 20;
  f.fits_right = right;
  return f;
}

std::vector<ErrorChange> changes(const std::vector<RowFamily>& then,
                                 const std::vector<RowFamily>& now) {
  return changes_since(parse_csv(recorded_errors(then), "recorded.csv"), now);
}

}  // namespace

TEST_CASE("nothing changed: nothing is said, whatever all of them together do", "[analysis]") {
  const std::vector<RowFamily> families{family("a", 0.05, 18), family("b", 0.1, 20),
                                        family("all", 0.07, 38)};
  CHECK(changes(families, families).empty());
  CHECK(changes(families, {family("a", 0.0503, 18), family("b", 0.1, 20), family("all", 0.9, 1)})
            .empty());
}

TEST_CASE("an error that grows is worse, one that shrinks is better", "[analysis]") {
  const auto grown = changes({family("a", 0.05, 18)}, {family("a", 0.06, 19)});
  REQUIRE(grown.size() == 3);
  CHECK((grown[0].what == "the median error of the step time" && grown[0].worse));
  CHECK((grown[0].before == "5.0 %" && grown[0].now == "6.0 %"));
  CHECK((grown[1].what == "the error of nine rows in ten" && grown[1].worse));
  CHECK((grown[2].what == "outcomes that are right" && !grown[2].worse));
}

TEST_CASE("a family that is gone is worse, a new one is not", "[analysis]") {
  const auto moved = changes({family("a", 0.05, 18)}, {family("b", 0.05, 18)});
  REQUIRE(moved.size() == 2);
  CHECK((moved[0].family == "b" && !moved[0].worse));
  CHECK((moved[1].family == "a" && moved[1].worse && moved[1].now == "gone"));
}

TEST_CASE("a recorded table that is none says what is wrong with it", "[analysis]") {
  CHECK_THROWS_WITH(
      changes_since(parse_csv("family,rows,medain,ninth_of_ten,memory_rows,memory_median,outcomes,"
                              "outcomes_right\n",
                              "recorded.csv"),
                    {}),
      "recorded.csv:1: median: the column is missing (did you mean \"medain\"?)");
  CHECK_THROWS_WITH(changes_since(parse_csv(recorded_errors(std::vector{family("a", 0.05, 18)}) +
                                                "b,1,2,3,4,many,6,7\n",
                                            "recorded.csv"),
                                  {}),
                    "recorded.csv:3: memory_median: expected a number, found \"many\"");
}
