// What a statement about figures means, and what is said about one that means nothing.
#include "analysis/studies/sweep/expression.hpp"

#include "analysis/studies/outcome/metrics.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"

namespace stepsim {
namespace {

Vocabulary words() {
  Vocabulary vocabulary;
  vocabulary.names = {"step_time", "peak_memory", "nodes", "fits", "optimizer"};
  vocabulary.dimension = [](std::string_view name) -> std::optional<Dimension> {
    if (name == "step_time") return Dimension::seconds;
    if (name == "peak_memory") return Dimension::bytes;
    if (name == "nodes" || name == "fits") return Dimension::ratio;
    return std::nullopt;
  };
  vocabulary.is_text = [](std::string_view name) { return name == "optimizer"; };
  return vocabulary;
}

Fact fact(std::string_view name) {
  if (name == "step_time") return 50.0;
  if (name == "peak_memory") return 64e9;
  if (name == "nodes") return 8.0;
  if (name == "fits") return 1.0;
  if (name == "optimizer") return std::string("adamw_8bit");
  return {};
}

bool holds(std::string_view text) {
  return Statement::parse(text, words(), "here").holds(fact);
}

std::string complaint(std::string_view text) {
  try {
    Statement::parse(text, words(), "here");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a statement compares figures in their units", "[expression]") {
  CHECK(holds("step_time < 60 s"));
  CHECK(holds("step_time < 1 min and fits"));
  CHECK_FALSE(holds("step_time < 49999 ms"));
  CHECK(holds("peak_memory <= 64 GB"));
  CHECK_FALSE(holds("peak_memory > 60 GiB"));
  CHECK(holds("optimizer == adamw_8bit"));
  CHECK(holds("optimizer != 'adamw'"));
  CHECK(holds("step_time/nodes < 7 s"));
  CHECK(holds("-nodes < 0"));
  CHECK(holds("nodes > 50 %"));
}

TEST_CASE("and binds more than or, times more than plus", "[expression]") {
  CHECK(holds("nodes == 8 or nodes == 9 and nodes == 10"));
  CHECK_FALSE(holds("(nodes == 8 or nodes == 9) and nodes == 10"));
  CHECK(holds("2 + 3 * nodes == 26"));
  CHECK(holds("(2 + 3) * nodes == 40"));
  CHECK(holds("nodes - 2 - 3 == 3"));
  CHECK(holds("nodes / 2 / 2 == 2"));
  CHECK(holds("not nodes == 9"));
  CHECK(holds("not (nodes == 9 or step_time > 60 s)"));
}

TEST_CASE("what is not known makes no comparison true", "[expression]") {
  const auto nothing = [](std::string_view) { return Fact(); };
  CHECK_FALSE(Statement::parse("step_time < 60 s", words(), "").holds(nothing));
  CHECK_FALSE(Statement::parse("step_time >= 60 s", words(), "").holds(nothing));
  CHECK_FALSE(Statement::parse("fits", words(), "").holds(nothing));
}

TEST_CASE("a statement that means nothing is shown with the place", "[expression]") {
  CHECK(complaint("step_time < 60") ==
        "here: the unit is missing on the right: expected a time such as \"25 us\"\n"
        "  step_time < 60\n            ^");
  CHECK(complaint("step_time < 60 GB") ==
        "here: a time is compared with a size\n  step_time < 60 GB\n            ^");
  CHECK(complaint("step_tine < 60 s") ==
        "here: nothing is called \"step_tine\" (did you mean \"step_time\"?)\n"
        "  step_tine < 60 s\n            ^");
  CHECK(complaint("step_time") ==
        "here: expected one of < <= > >= == != after \"step_time\", found the end\n"
        "  step_time\n           ^");
  CHECK(complaint("fits and") ==
        "here: expected a name or a number, found the end\n  fits and\n          ^");
  CHECK(complaint("fits fits") ==
        "here: expected \"and\", \"or\" or the end, found \"fits\"\n  fits fits\n       ^");
  CHECK(complaint("(nodes == 8") ==
        "here: expected \")\", found the end\n  (nodes == 8\n             ^");
  CHECK(complaint("optimizer == 'x") ==
        "here: a quote is never closed\n  optimizer == 'x\n               ^");
  CHECK(complaint("optimizer < 'x'") ==
        "here: texts are compared with == or != only\n  optimizer < 'x'\n            ^");
  CHECK(complaint("nodes == 'x'") ==
        "here: a number is compared with a text\n  nodes == 'x'\n        ^");
  CHECK(complaint("step_time + peak_memory > 0 s") ==
        "here: a time and a size cannot be added\n"
        "  step_time + peak_memory > 0 s\n                          ^");
  CHECK(complaint("step_time * step_time > 0 s") ==
        "here: a time times a time measures nothing known\n"
        "  step_time * step_time > 0 s\n                        ^");
}

TEST_CASE("a statement is as deep as it may be, and no deeper", "[expression]") {
  const auto many = [](std::string_view part, std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += part;
    return text;
  };
  CHECK(holds(many("(", 150) + "nodes == 8" + many(")", 150)));
  CHECK(holds(many("not ", 150) + "nodes == 8"));
  CHECK(holds("nodes" + many(" + nodes", 999) + " == 8000"));
  const std::string deep = "more than 200 parts stand in each other here";
  for (const std::string_view part : {"(", "not ", "-"})
    CHECK(complaint(many(part, 2000) + "nodes").starts_with("here: " + deep));
  CHECK(complaint("nodes" + many(" + nodes", 2000) + " > 1") ==
        "here: a condition of 16009 characters; at most 10000 are read");
}

TEST_CASE("an outcome goes through a line unchanged", "[metrics]") {
  Outcome outcome = impossible("strategy.zero: too many\nand more");
  CHECK(outcome.reason == "strategy.zero: too many");
  CHECK(outcome.of("fits") == 0);
  CHECK_FALSE(outcome.of("step_time"));
  CHECK_FALSE(outcome.of("share.compute"));
  outcome.figures[*find_metric("step_time")] = 1.0 / 3;
  outcome.figures[*find_metric("time.compute")] = 1.0 / 12;
  CHECK(outcome.of("share.compute") == 0.25);
  const auto back = outcome_from(to_line(outcome));
  REQUIRE(back);
  CHECK(to_line(*back) == to_line(outcome));
  CHECK(back->of("step_time") == 1.0 / 3);
  CHECK_FALSE(outcome_from(to_line(outcome).substr(0, 40)));
}

}  // namespace stepsim
