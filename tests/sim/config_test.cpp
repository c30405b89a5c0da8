#include "sim/base/config.hpp"

#include <fmt/format.h>

#include <functional>

#include "tests/support/catch.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

// What a reader of `text` is told in the end; empty when all is well.
std::string told(std::string_view text, const std::function<void(const Table&)>& read) {
  try {
    const Document file = parse_document(text, "a.yaml");
    read(file.root());
    file.finish();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string told_of_bandwidth(std::string_view value) {
  return told(fmt::format("name: x\nrate: {}\n", value), [](const Table& root) {
    root.text("name");
    root.quantity<BytesPerSecond>("rate");
  });
}

void read_a(const Table& root) {
  root.text_or("a", "");
}

}  // namespace

TEST_CASE("values arrive with the types that were asked for", "[sim]") {
  const Document file = parse_document(
      "name: tiny\nnodes: 16\nshare: 0.25\npacking: true\nrate: 25 GB/s\nlist: [a, b]\n"
      "job: {method: sft}\ncards: [{slot: 1}, {slot: 2}]\n",
      "a.yaml");
  const Table root = file.root();
  CHECK(root.text("name") == "tiny");
  CHECK(root.integer("nodes", 1, 100) == 16);
  CHECK(root.number("share", 0, 1) == 0.25);
  CHECK(root.flag_or("packing", false));
  CHECK(root.quantity<BytesPerSecond>("rate").value == 25e9);
  CHECK(root.texts("list") == std::vector<std::string>{"a", "b"});
  CHECK(root.table("job").choice("method", {"sft", "dpo"}) == "sft");
  const auto cards = root.tables("cards");
  REQUIRE(cards.size() == 2);
  CHECK(cards[1].integer("slot", 0, 9) == 2);
  CHECK_FALSE(root.has("fabric"));
  CHECK(root.text_or("fabric", "none") == "none");
  CHECK(root.integer_or("seed", 7, 0, 9) == 7);
  CHECK(root.number_or("scale", 0.5, 0, 1) == 0.5);
  CHECK_FALSE(root.table_if("offload").has_value());
  CHECK(root.texts_or("tags").empty());
  CHECK_NOTHROW(file.finish());
}

TEST_CASE("an unknown key is an error with the nearest known one, or with all of them", "[sim]") {
  const auto read = [](const Table& root) {
    root.text_or("method", "sft");
    root.text_or("zero", "0");
  };
  CHECK(told("methd: dpo\n", read) == "a.yaml:1: methd: unknown key (did you mean \"method\"?)");
  CHECK(told("zero: 1\nbanana: 2\n", read) ==
        "a.yaml:2: banana: unknown key; expected method or zero");
}

TEST_CASE("an unknown key deep inside is named with its path", "[sim]") {
  const auto read = [](const Table& root) {
    for (const Table& card : root.table("node").tables("cards")) card.text("model");
  };
  CHECK(told("node:\n  cards:\n    - model: x\n    - model: y\n      modle: z\n", read) ==
        "a.yaml:5: node.cards[1].modle: unknown key (did you mean \"model\"?)");
}

TEST_CASE("a missing key is named at the line of the mapping that lacks it", "[sim]") {
  const auto read = [](const Table& root) { root.table("job").text("method"); };
  CHECK(told("name: x\n", read) ==
        "a.yaml:1: job: is missing\n"
        "a.yaml:1: name: unknown key; expected job");
  CHECK(told("\n\njob:\n  {}\n", read) == "a.yaml:3: job.method: is missing");
  CHECK(told("job: {method: ~}\n", read) == "a.yaml:1: job.method: is missing");
}

TEST_CASE("a repeated key is an error at its second place", "[sim]") {
  CHECK(told("a: 1\nb: {}\na: 2\n", [](const Table& root) { root.text("a"), root.table("b"); }) ==
        "a.yaml:3: a: the key stands here twice, first in line 1");
  CHECK(told("{\"a\": 1,\n \"a\": 1}", read_a) ==
        "a.yaml:2: a: the key stands here twice, first in line 1");
}

TEST_CASE("a quantity needs its unit, and one of the right kind", "[sim]") {
  CHECK(told_of_bandwidth("25 GB/s").empty());
  CHECK(told_of_bandwidth("25") ==
        "a.yaml:2: rate: the unit is missing: expected a bandwidth such as \"25 GB/s\", found "
        "\"25\"");
  CHECK(told_of_bandwidth("25 us") ==
        "a.yaml:2: rate: expected a bandwidth such as \"25 GB/s\", found a time (\"25 us\")");
  CHECK(told_of_bandwidth("25 gb/s") ==
        "a.yaml:2: rate: expected a bandwidth such as \"25 GB/s\", found \"25 gb/s\"; units: " +
            known_units(Dimension::bytes_per_second));
  CHECK(told_of_bandwidth("[25 GB/s]") ==
        "a.yaml:2: rate: expected a bandwidth such as \"25 GB/s\", found a list");
  CHECK(told_of_bandwidth("{value: 25 GB/s}") ==
        "a.yaml:2: rate: expected a bandwidth such as \"25 GB/s\", found a mapping");
}

TEST_CASE("a quantity is finite, and a rate is above zero", "[sim]") {
  const auto text = GENERATE("nan GB/s", "inf GB/s", "1e999 GB/s", "-1e999 GB/s");
  CHECK(told_of_bandwidth(text) ==
        fmt::format("a.yaml:2: rate: expected a finite number, found \"{}\"", text));
  const auto small = GENERATE("0 GB/s", "-0 GB/s", "-5 GB/s", "1e-999 GB/s");
  CHECK(told_of_bandwidth(small) ==
        fmt::format("a.yaml:2: rate: a bandwidth must be above zero, found \"{}\"", small));
}

TEST_CASE("a time or a size may be zero but not negative", "[sim]") {
  const auto read = [](const Table& root) {
    root.quantity<Seconds>("time");
    root.quantity<Bytes>("size");
  };
  CHECK(told("time: 0 s\nsize: 0 B\n", read).empty());
  CHECK(told("time: -1 us\nsize: -1 GB\n", read) ==
        "a.yaml:1: time: a time must be zero or more, found \"-1 us\"\n"
        "a.yaml:2: size: a size must be zero or more, found \"-1 GB\"");
}

TEST_CASE("numbers keep to their bounds", "[sim]") {
  const auto read = [](const Table& root) { root.integer("n", 1, 8); };
  CHECK(told("n: 8\n", read).empty());
  CHECK(told("n: 9\n", read) == "a.yaml:1: n: expected a number from 1 to 8, found 9");
  CHECK(told("n: 1e999\n", read) == "a.yaml:1: n: expected a plain number, found \"1e999\"");
  CHECK(told("n: nan\n", read) == "a.yaml:1: n: expected a plain number, found \"nan\"");
  CHECK(told("n: 2 GB\n", read) == "a.yaml:1: n: expected a plain number, found \"2 GB\"");
  CHECK(told("n: 2.5\n", read) == "a.yaml:1: n: expected a whole number, found 2.5");
  CHECK(told("n: \"2\"\n", read) == "a.yaml:1: n: expected a plain number, found the text \"2\"");
  CHECK(told("n: two\n", read) == "a.yaml:1: n: expected a plain number, found \"two\"");
}

TEST_CASE("a choice names its list and the nearest member", "[sim]") {
  const auto read = [](const Table& root) {
    root.choice("method", {"sft", "dpo", "grpo"});
    root.flag_or("packing", true);
  };
  CHECK(told("method: gprpo\npacking: yes\n", read) ==
        "a.yaml:1: method: expected sft, dpo or grpo, found \"gprpo\" (did you mean \"grpo\"?)\n"
        "a.yaml:2: packing: expected true or false, found \"yes\"");
}

TEST_CASE("a constant has value, range, grade and source, and is kept by its path", "[sim]") {
  const Document file = parse_document(
      "gpu:\n  rate: {value: 3 TB/s, low: 2 TB/s, grade: measured, source: a test, note: warm}\n",
      "a.yaml");
  const auto rate = file.root().table("gpu").constant<BytesPerSecond>("rate");
  file.finish();
  CHECK(rate.value.value == 3e12);
  CHECK(rate.low.value == 2e12);
  CHECK(rate.high == rate.value);  // a range that is not given is no range
  CHECK(rate.grade == Grade::measured);
  REQUIRE(file.constants().size() == 1);
  CHECK(file.constants()[0].name == "gpu.rate");
  CHECK(file.constants()[0].source == "a test; warm");
  CHECK(file.constants()[0].dimension == Dimension::bytes_per_second);
}

TEST_CASE("a constant that cannot be trusted is refused", "[sim]") {
  const auto read = [](const Table& root) { root.constant<Seconds>("c"); };
  CHECK(told("c: 2 us\n", read) ==
        "a.yaml:1: c: expected a constant {value, low, high, grade, source}, found \"2 us\"");
  CHECK(told("c: {value: 2 us}\n", read) ==
        "a.yaml:1: c.grade: is missing\na.yaml:1: c.source: is missing");
  CHECK(told("c: {value: 2 us, low: 3 us, grade: guess, source: none}\n", read) ==
        "a.yaml:1: c: expected low <= value <= high");
  CHECK_THAT(told("c: {value: 2 us, grade: gues, source: none}\n", read),
             Contains("c.grade: expected measured, fitted, derived, vendor, datasheet or guess, "
                      "found \"gues\" (did you mean \"guess\"?)"));
}

TEST_CASE("all problems of a file come at once, in the order of lines", "[sim]") {
  const auto read = [](const Table& root) {
    root.quantity<Seconds>("time");
    root.integer("n", 0, 9);
    root.problem("name", "is taken");
    root.text("job");
  };
  CHECK(told("name: x\nextra: 1\nn: 99\nname: y\ntime: 5\n", read) ==
        "a.yaml:1: name: is taken\n"
        "a.yaml:1: job: is missing\n"
        "a.yaml:2: extra: unknown key; expected time, n, name or job\n"
        "a.yaml:3: n: expected a number from 0 to 9, found 99\n"
        "a.yaml:4: name: the key stands here twice, first in line 1\n"
        "a.yaml:5: time: the unit is missing: expected a time such as \"25 us\", found \"5\"");
}

TEST_CASE("keys of other programs may be left over, mistakes may not", "[sim]") {
  const Document file = parse_document("lr: 1e-4\nn: two\n", "a.yaml");
  file.root().has("n");
  CHECK(file.root().sound());
  CHECK_NOTHROW(file.finish(Leftovers::allowed));
  file.root().number("n", 0, 9);
  CHECK_FALSE(file.root().sound());
  CHECK_THROWS_WITH(file.finish(Leftovers::allowed),
                    "a.yaml:2: n: expected a plain number, found \"two\"");
}
