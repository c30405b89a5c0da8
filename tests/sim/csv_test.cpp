#include "sim/base/csv.hpp"

#include "tests/support/catch.hpp"

using namespace stepsim;

TEST_CASE("cells for machines are quoted only where they must be", "[sim]") {
  CHECK(csv_text({"a", "b"}, {{"x,y", "say \"no\""}, {"", "z\n"}}) ==
        "a,b\n\"x,y\",\"say \"\"no\"\"\"\n,\"z\n\"\n");
}

TEST_CASE("what was written as CSV reads back cell by cell", "[sim]") {
  const std::vector<std::vector<std::string>> rows{{"x,y", "say \"no\""}, {"", "z\nz"}};
  const CsvTable table = parse_csv(csv_text({"a", "b"}, rows), "t.csv");
  CHECK(table.columns == std::vector<std::string>{"a", "b"});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].cells == rows[0]);
  CHECK(table.rows[1].cells == rows[1]);
  CHECK(table.cell(table.rows[0], "a") == "x,y");
}

TEST_CASE("what a reader would drop, and no terminal shows, is written as an escape", "[sim]") {
  const std::vector<std::vector<std::string>> rows{{"x\ry", "z\r"}};
  const CsvTable table = parse_csv(csv_text({"\xEF\xBB\xBF"
                                             "a",
                                             "b"},
                                            rows),
                                   "t.csv");
  CHECK(table.columns.front() == "\\ufeffa");
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].cells == std::vector<std::string>{"x\\u000dy", "z\\u000d"});
}
