// What a person reads of an explanation, word by word.
#include "cli/explain_output.hpp"

#include "analysis/studies/explain/summary.hpp"
#include "tests/support/catch.hpp"

namespace stepsim {
namespace {

Explanation two_steps() {
  Explanation e;
  e.a.title = "slow";
  e.b.title = "fast";
  e.a.step_time = {12};
  e.b.step_time = {8};
  e.a.capacity = e.b.capacity = 1;
  e.a.causes[index(Cause::gather_bytes)] = {{5}, {1}};
  e.a.causes[index(Cause::compute)] = {{6}, {}};
  e.b.causes[index(Cause::compute)] = {{8}, {}};
  e.a.idle = {1};
  e.a.without.fill({12});
  e.b.without.fill({8});
  e.a.without[index(Cause::gather_bytes)] = {9};
  e.rows = gap_rows(e.a, e.b);
  return e;
}

}  // namespace

TEST_CASE("a winner that changes at the memory limits is said behind the first sentence", "[cli]") {
  Explanation e = two_steps();
  e.at_limit = AtLimit{32, 4, 900, 700, true};
  CHECK(explanation_text(e).starts_with(
      "A takes 4.00 s longer than B (12.0 s against 8.00 s), above all in gather_bytes (+5.00 s).\n"
      "as they stand B wins, but at each one's memory limit A does: A 900 tok/s/GPU with a "
      "micro-batch of 32, B 700\ntok/s/GPU with a micro-batch of 4\n"));
  e.at_limit->flips = false;
  CHECK(explanation_text(e).find("as they stand") == std::string::npos);
}

TEST_CASE("the sentence of an explanation names setting, size and what is left", "[cli]") {
  Explanation e = two_steps();
  SettingRows& settings = e.settings.emplace();
  SettingRow row;
  row.setting = {.key = "strategy.zero", .a = "3", .b = "2", .text_a = "3", .text_b = "2"};
  row.seconds = {3};
  row.alone = {9.5};
  row.changed = ChangedStep{{9.5}, 1, Fit::fits, Cause::gather_bytes};
  settings.rows = {row};
  settings.rest = {1};
  CHECK(summary_text(e) ==
        "A takes 4.00 s longer than B (12.0 s against 8.00 s), above all in gather_bytes (+5.00 "
        "s), and "
        "strategy.zero (3 in A, 2 in B) carries 3.00 s of that: with that alone as in B, A takes "
        "9.50 s.");
  settings.rows.front().changed->fit = Fit::oom;
  CHECK(
      summary_text(e).ends_with("carries 3.00 s of that: with that alone as in B, A takes 9.50 s "
                                "and does not fit into memory."));
  settings.rows.front().seconds = {4};
  settings.rows.front().alone = {12};
  CHECK(summary_text(e).ends_with(
      "carries all of it: alone it changes nothing, only together with others."));
  settings.rows.front().seconds = {0.5};
  settings.rest = {3.5};
  CHECK(summary_text(e).ends_with("(+5.00 s), most of it by what no setting says."));
  settings.rows.clear();
  CHECK(summary_text(e).ends_with(", and no setting that differs carries any of it."));
}

TEST_CASE("rows are what is exposed in A less what is in B, and add up to the gap", "[cli]") {
  const std::string text = explanation_text(two_steps());
  CHECK(text.find("cause         exposed in A  exposed in B  of the gap    share  hidden in A  "
                  "hidden in B\n"
                  "------------  ------------  ------------  ----------  -------  -----------  "
                  "-----------\n"
                  "gather_bytes        5.00 s           0 s     +5.00 s  125.0 %       1.00 s      "
                  "    0 s\n"
                  "idle                1.00 s           0 s     +1.00 s   25.0 %          0 s      "
                  "    0 s\n"
                  "compute             6.00 s        8.00 s     -2.00 s  -50.0 %          0 s      "
                  "    0 s\n"
                  "step, gap           12.0 s        8.00 s     +4.00 s  100.0 %\n") !=
        std::string::npos);
  std::string in_a_line = text;
  std::ranges::replace(in_a_line, '\n', ' ');
  CHECK(
      in_a_line.find("with free gather_bytes A would take 9.00 s instead of 12.0 s: the gap would "
                     "be 1.00 s instead of 4.00 s") != std::string::npos);
}

TEST_CASE("what does not fit and what was measured stand below the first sentence", "[cli]") {
  Explanation e = two_steps();
  e.a.measured = Range{13, 13};
  e.b.measured = Range{7, 8};
  e.fairness.too_large = {"B does not fit into memory: 2 GB of 1 GB usable (200 %)"};
  CHECK(explanation_text(e).starts_with(
      "A takes 4.00 s longer than B (12.0 s against 8.00 s), above all in gather_bytes (+5.00 s).\n"
      "B does not fit into memory: 2 GB of 1 GB usable (200 %)\n"
      "measured: A 13.0 s, B 7.00 s to 8.00 s, so A 5.00 s to 6.00 s longer; predicted: 4.00 s "
      "longer\n"));
}

TEST_CASE("a row says in words what would happen were it free", "[cli]") {
  const Explanation e = two_steps();
  CHECK(counterfactual_text(e, e.rows.front()) ==
        "with free gather_bytes A would take 9.00 s instead of 12.0 s: the gap would be 1.00 s "
        "instead of 4.00 s");
}

TEST_CASE("how many draws agree is said, and how many more there might have been", "[cli]") {
  Explanation e = two_steps();
  e.draws = GapDraws{.draws = 8, .most = 24, .a_slower = 8, .same_top = 7};
  CHECK(draws_text(e) ==
        "A is slower in all of 8 draws of the constants, and gather_bytes is the largest row in 7 "
        "of 8 (up to 24 would have been made, were it less clear)");
}

}  // namespace stepsim
