#include "cli/options.hpp"

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

const Usage usage{.brief = "tests",
                  .call = "stepsim test NAME",
                  .summary = "Tests.",
                  .options = {{"output", "FILE", "where", 'o'},
                              {"sizes", "LIST", "how large"},
                              {"json", "", "for machines"}},
                  .examples = ""};

Options parsed(const std::vector<std::string>& words) {
  const auto options = parse(usage, words);
  REQUIRE(options.has_value());
  return *options;
}

}  // namespace

TEST_CASE("options stand anywhere, with a blank or an equals sign", "[cli]") {
  const std::vector<std::string> words =
      GENERATE(std::vector<std::string>{"name", "--output", "a.h5", "--json"},
               std::vector<std::string>{"--output=a.h5", "--json", "name"},
               std::vector<std::string>{"-o", "a.h5", "--json", "name"},
               std::vector<std::string>{"--json", "-oa.h5", "name"});
  const Options options = parsed(words);
  CHECK(options.words == std::vector<std::string>{"name"});
  CHECK(options.get("output") == "a.h5");
  CHECK(options.has("json"));
  CHECK_FALSE(options.has("sizes"));
}

TEST_CASE("an unknown option names the nearest one", "[cli]") {
  CHECK_THROWS_WITH(parsed({"--ouput", "a"}),
                    "unknown option --ouput (did you mean \"--output\"?)");
  CHECK_THROWS_WITH(parsed({"--out", "a"}), Contains("unknown option --out"));  // no guessing
}

TEST_CASE("an option is given once, with its value", "[cli]") {
  CHECK_THROWS_WITH(parsed({"--output", "a", "-o", "b"}), "--output is given twice");
  CHECK_THROWS_WITH(parsed({"--json", "--json"}), "--json is given twice");
  CHECK_THROWS_WITH(parsed({"--output"}), Contains("expected a value"));
  CHECK_THROWS_WITH(parsed({"--json=1"}), "--json: takes no value");
}

TEST_CASE("a word too many is named", "[cli]") {
  CHECK_THROWS_WITH(parsed({"a", "b"}), "unexpected \"b\"; usage: stepsim test NAME");
}

TEST_CASE("ranks are numbers and ranges in the order given", "[cli]") {
  CHECK(parse_ranks("0") == std::vector<std::uint32_t>{0});
  CHECK(parse_ranks("4-6,0,9-9") == std::vector<std::uint32_t>{4, 5, 6, 0, 9});
  for (const char* text : {"", ",", "1,", "-1", "1-", "a", "1-2-3", "1.5", "0x1", " 1"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_ranks(text), Contains("--ranks: expected"));
  }
  CHECK_THROWS_WITH(parse_ranks("3-1"), "--ranks: \"3-1\" runs backwards; write 1-3");
}

TEST_CASE("a range of sizes doubles from one end to the other", "[cli]") {
  CHECK(parse_sizes("1KiB:8KiB") == std::vector<double>{1024, 2048, 4096, 8192});
  CHECK(parse_sizes("1KiB:5KiB") == std::vector<double>{1024, 2048, 4096});
  CHECK(parse_sizes("3B:3B") == std::vector<double>{3});
}

TEST_CASE("a list of sizes is taken as it stands", "[cli]") {
  CHECK(parse_sizes("1GB,1GiB") == std::vector<double>{1e9, 1024.0 * 1024 * 1024});
  CHECK(parse_sizes("1.5 MiB") == std::vector<double>{1.5 * 1024 * 1024});
}

TEST_CASE("sizes without a unit, below a byte or without end are refused", "[cli]") {
  for (const char* text : {"", "1", "0B", "0.5B", "-1B", "1e300GB", "nanB", "infB",
                           "1GiB:", ":1GiB", "1KiB:2KiB:4KiB", "1kb"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_sizes(text), Contains("--sizes: "));
  }
  CHECK_THROWS_WITH(parse_sizes("2KiB:1KiB"), Contains("runs backwards"));
}

TEST_CASE("a count is a whole number within its bounds", "[cli]") {
  CHECK(parse_count("--nodes", "7", 1, 10) == 7);
  CHECK_THROWS_WITH(parse_count("--nodes", "0", 1, 10), "--nodes: expected 1 to 10, found 0");
  CHECK_THROWS_WITH(parse_count("--nodes", "11", 1, 10), "--nodes: expected 1 to 10, found 11");
  CHECK_THROWS_WITH(parse_count("--nodes", "4294967297", 1, 10), Contains("expected 1 to 10"));
  for (const char* text : {"", "1.5", "-1", "+1", "1 ", "one"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_count("--nodes", text, 1, 10), Contains("expected a whole number"));
  }
}
