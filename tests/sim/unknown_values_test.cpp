// Values that somebody wrote down without knowing them: read as one, listed and drawn as constants.
#include "sim/base/config.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;

namespace {

const std::string text =
    "job:\n"
    "  fill: {value: 0.6, low: 0.4, high: 1, source: nobody says}\n"
    "  batch: {value: 8, low: 2, high: 32, source: nobody says}\n"
    "  inner:\n"
    "    layout: {value: fused, any_of: [fused, separate], grade: guess, source: nobody says}\n"
    "    leaf: {value: false, any_of: [true, false], source: nobody says}\n";

struct Values {
  double fill = 0;
  std::int64_t batch = 0;
  std::string layout;
  bool leaf = false;
};

Document settled(const std::string& content, const std::optional<Draw>& draw = {}) {
  Document file = parse_document(content, "a.yaml");
  if (draw) file.draw_constants(*draw, "scenario");
  file.settle_unknown("job");
  return file;
}

Values read(const Document& file) {
  const Table job = file.root().table("job"), inner = job.table("inner");
  return {job.number("fill", 0, 1), job.integer("batch", 1, 64),
          inner.choice("layout", {"fused", "separate"}), inner.flag_or("leaf", true)};
}

std::string told(const std::string& fill) {
  const Document file = settled("job:\n  fill: " + fill + "\n");
  try {
    file.root().table("job").number("fill", 0, 1);
    file.finish();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an unknown value is read as what is stated, and listed with its range", "[sim]") {
  const Document file = settled(text);
  const Values values = read(file);
  CHECK(values.fill == 0.6);
  CHECK(values.batch == 8);
  CHECK(values.layout == "fused");
  CHECK_FALSE(values.leaf);
  file.finish();
  REQUIRE(file.constants().size() == 4);
  const NamedConstant &fill = file.constants()[0], &batch = file.constants()[1],
                      &layout = file.constants()[2];
  CHECK(fill.name == "job.fill");
  CHECK(fill.low == 0.4);
  CHECK(fill.high == 1);
  CHECK(fill.grade == Grade::guess);
  CHECK(fill.source == "nobody says");
  CHECK(batch.whole);
  CHECK(layout.name == "job.inner.layout");
  CHECK(value_text(layout, layout.value) == "fused");
  CHECK(value_text(layout, layout.high) == "separate");
}

TEST_CASE("over all draws unknown values visit their ranges", "[sim]") {
  constexpr std::uint32_t draws = 16;
  std::uint32_t separate = 0, leaves = 0, above = 0;
  for (std::uint32_t sample = 0; sample < draws; ++sample) {
    const Values values = read(settled(text, Draw{.seed = 3, .sample = sample, .of = draws}));
    CHECK((values.fill >= 0.4 && values.fill <= 1));
    CHECK((values.batch >= 2 && values.batch <= 32));
    above += values.fill > 0.6 ? 1 : 0;
    separate += values.layout == "separate" ? 1 : 0;
    leaves += values.leaf ? 1 : 0;
  }
  CHECK(above == draws / 2);  // what is stated is the median
  CHECK(separate == draws / 2);
  CHECK(leaves == draws / 2);
}

TEST_CASE("an unknown value without a range, or with one that cannot be, is refused", "[sim]") {
  CHECK(told("{value: 0.5, low: 0.1, high: 0.9, source: s}").empty());
  CHECK(told("{value: 0.5, low: 0.1, high: 1.5, source: s}") ==
        "a.yaml:2: job.fill: expected a number from 0 to 1, found 1.5");
  CHECK(told("{value: 0.5, source: s}") ==
        "a.yaml:2: job.fill: expected low and high, or any_of; what is known stands alone");
  CHECK(told("{value: 0.5, low: 0.7, source: s}") ==
        "a.yaml:2: job.fill: expected low <= value <= high");
  CHECK(told("{low: 0.1, high: 0.9, source: s}") == "a.yaml:2: job.fill.value: is missing");
  CHECK(told("{value: 0.5, low: 0.1}") ==
        "a.yaml:2: job.fill.source: is missing: where the value and its range come from");
  CHECK(told("{value: 0.5, any_of: [0.1, 0.2], source: s}") ==
        "a.yaml:2: job.fill.any_of: expected a list of at least two, \"0.5\" among them");
  CHECK(told("{value: 0.5, any_of: [0.5, much], source: s}") ==
        "a.yaml:2: job.fill: expected a plain number, found \"much\"");
  CHECK(told("{value: 0.5, any_of: [0.5, 0.2], high: 1, source: s}") ==
        "a.yaml:2: job.fill.any_of: says again what low and high say");
  CHECK(told("{value: much, low: 0.1, source: s}")
            .starts_with("a.yaml:2: job.fill.value: expected a plain number; words and flags are "
                         "listed under any_of"));
  CHECK(told("{value: 1, low: 2 ms, high: 3 s, source: s}")
            .starts_with("a.yaml:2: job.fill.value: expected a time, as before"));
  CHECK(told("{value: 0.5, lo: 0.1, high: 1, source: s}")
            .starts_with("a.yaml:2: job.fill.lo: unknown key (did you mean \"low\"?)"));
}
