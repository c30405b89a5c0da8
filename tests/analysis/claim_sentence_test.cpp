// What a sentence asserts, and what it is told when it cannot be read.
#include "analysis/studies/claims/claim_sentence.hpp"

#include <fmt/format.h>

#include "analysis/studies/claims/judgement.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"

namespace stepsim {
namespace {

const SentenceQuestion two{{{"A", "a.yaml", {}}, {"B", "b.yaml", {}}}, {}};

Assertion read(const std::string& sentence, const SentenceQuestion& question = two) {
  return claim_of_sentence(sentence, question).assertions.front();
}

std::string problem_of(const std::string& sentence, const SentenceQuestion& question = two) {
  try {
    claim_of_sentence(sentence, question);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

struct Sentence {
  std::string text, quantity;
  std::optional<double> low, high;
};

const std::string forms =
    "; such sentences can: \"A is faster than B\", \"A is 2x faster than B\", \"A is at least 20 % "
    "slower than B\", \"A needs 20 % less memory than B\", \"A needs under 70 GB\", \"A takes at "
    "most 20 s\", \"A takes "
    "about 30 h in all\", \"A costs under 500\", \"A fits\", \"A does not fit\"";

}  // namespace

TEST_CASE("a sentence is read as the assertion that it is", "[claims]") {
  const std::string rate = "A.tokens_per_second / B.tokens_per_second";
  const std::string memory = "A.peak_memory / B.peak_memory";
  const Sentence each = GENERATE_COPY(values<Sentence>(
      {{"A is faster than B", rate, 1, {}},
       {"A is slower than B", rate, {}, 1},
       {"A is 2x faster than B", rate, 1.8, 2.2},
       {"A is about 2 times faster than B.", rate, 1.8, 2.2},
       {"A is 10 % faster than B", rate, 1.05, 1.15},
       {"A is 10 % slower than B", rate, 0.85, 0.95},
       {"A needs 5 % less memory than B", memory, 0.925, 0.975},
       {"A is at least 2x faster than B", rate, 2, {}},
       {"A is at most 20% faster than B", rate, {}, 1.2},
       {"B is at least 2x slower than A", "B.tokens_per_second / A.tokens_per_second", {}, 0.5},
       {"A is at most 20 % slower than B", rate, 0.8, {}},
       {"A needs at least 20 % less memory than B", memory, {}, 0.8},
       {"A needs at most 2x more memory than B", memory, {}, 2},
       {"A needs under 70 GB", "A.peak_memory", {}, 70e9},
       {"A needs at least 70 GiB of memory", "A.peak_memory", 70 * 0x1p30, {}},
       {"A takes under 20 s", "A.step_time", {}, 20},
       {"A takes over 1.5 min a step", "A.step_time", 90, {}},
       {"A takes at most 30 h in all", "A.wall", {}, 108000},
       {"A takes under 5 h", "A.wall", {}, 18000},
       {"A takes over 2 h a step", "A.step_time", 7200, {}},
       {"A fits", "A.fits", 1, {}},
       {"B does not fit", "B.fits", {}, 0}}));
  CAPTURE(each.text);
  const Assertion made = read(each.text);
  CHECK(made.quantity.text == each.quantity);
  REQUIRE(made.low.has_value() == each.low.has_value());
  REQUIRE(made.high.has_value() == each.high.has_value());
  if (each.low) CHECK(*made.low == Approx(*each.low));
  if (each.high) CHECK(*made.high == Approx(*each.high));
}

TEST_CASE("a scenario is called A, a, or as its file is", "[claims]") {
  const SentenceQuestion files{{{"A", "runs/zero3.yaml", {}}, {"B", "runs/zero2.yaml", {}}}, {}};
  for (const char* name : {"B", "b", "zero2", "zero2.yaml", "runs/zero2.yaml"})
    CHECK(read(fmt::format("{} needs under 70 GB", name), files).quantity.text ==
          read("B needs under 70 GB", files).quantity.text);
}

TEST_CASE("money becomes time of GPUs", "[claims]") {
  const Assertion made = read("A costs under 500", {two.scenarios, 2.5});
  CHECK(made.quantity.text == "A.gpu_time");
  CHECK(*made.high == Approx(500 / 2.5 * 3600));
  CHECK(problem_of("A costs under 500") ==
        "\"A costs under 500\": what does a GPU cost? say --price N, for a GPU and an hour");
}

TEST_CASE("a sentence that cannot be read says where it stops", "[claims]") {
  CHECK(problem_of("A is nice") == "\"A is nice\" cannot be read at \"nice\"" + forms);
  CHECK(problem_of("A is 2x faster") == "\"A is 2x faster\" cannot be read where it ends" + forms);
  CHECK(problem_of("A is 2 faster than B") ==
        "\"A is 2 faster than B\" cannot be read at \"faster\"" + forms);
  CHECK(problem_of("A takes under 20 GB") ==
        "\"A takes under 20 GB\" cannot be read at \"20\"" + forms);
  CHECK(problem_of("A needs 120 % less memory than B").ends_with(forms));
  CHECK(problem_of("A fits well") == "\"A fits well\" cannot be read at \"well\"" + forms);
  CHECK(problem_of("C fits") == "\"C fits\": there is no scenario \"C\": A is a.yaml, B is b.yaml");
}

TEST_CASE("a verdict is a sentence, and every condition is told", "[claims]") {
  JudgedClaim claim;
  claim.verdict = Verdict::undecided;
  claim.probability = 0.5;
  JudgedCondition base;
  base.holds = 12;
  base.draws = 24;
  base.stated = 1.99;
  base.low = 1.6;
  base.high = 3;
  JudgedCondition other = base;
  other.name = "grouped";
  other.holds = 0;
  claim.conditions = {base, other};
  Mover mover;
  mover.constant.name = "node.host.core_speed";
  claim.movers = {mover};
  CHECK(
      sentence_text(claim) ==
      "open: 1.99, likely 1.6 to 3; it holds in 12 of 24 draws of the constants, and depends most "
      "on node.host.core_speed");
  CHECK(condition_texts(claim) ==
        std::vector<std::string>{"grouped: 1.99 (1.6 to 3), holds in 0 of 24 draws"});
  claim.verdict = Verdict::supported;
  CHECK(sentence_text(claim) ==
        "yes: 1.99, likely 1.6 to 3; it holds in 12 of 24 draws of the constants");
}

}  // namespace stepsim
