// What a person reads of an explanation, word by word.
#include "cli/explain_output.hpp"

#include "tests/support/catch.hpp"

namespace stepsim {
namespace {

Explanation two_steps() {
  Explanation e;
  e.a.title = "slow";
  e.b.title = "fast";
  e.a.step_time = e.a.attribution.step_time = {12};
  e.b.step_time = e.b.attribution.step_time = {8};
  e.a.capacity = e.b.capacity = 1;
  ExplainRow row;
  row.cause = Cause::gather_bytes;
  row.in_a = true;
  row.seconds = {4};
  row.a_without = {9};
  row.b_without = {8};
  row.closes = 0.75;
  e.rows = {row};
  return e;
}

}  // namespace

TEST_CASE("a winner that changes at the memory limits is said first", "[cli]") {
  Explanation e = two_steps();
  e.at_limit = AtLimit{32, 4, 900, 700, true};
  CHECK(explanation_text(e).starts_with(
      "as they stand B wins, but at each one's memory limit A does: A 900 tok/s/GPU with a "
      "micro-batch of 32, B 700 tok/s/GPU with a micro-batch of 4\n"));
  e.at_limit->flips = false;
  CHECK_FALSE(explanation_text(e).starts_with("as they stand"));
}

TEST_CASE("a row says in words what would happen were it free", "[cli]") {
  const Explanation e = two_steps();
  CHECK(counterfactual_text(e, e.rows.front()) ==
        "with free gather_bytes A would take 9.00 s instead of 12.0 s: the gap closes by 75 %");
}

TEST_CASE("how many draws agree is said, and how many more there might have been", "[cli]") {
  Explanation e = two_steps();
  e.draws = GapDraws{.draws = 8, .most = 24, .a_slower = 8, .same_top = 7};
  CHECK(draws_text(e) ==
        "A is slower in all of 8 draws of the constants, and gather_bytes is the largest row in 7 "
        "of 8 (up to 24 would have been made, were it less clear)");
}

}  // namespace stepsim
