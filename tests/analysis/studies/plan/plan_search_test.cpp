// A search that is cut short gives the best so far, and says what it has left open.
#include "analysis/studies/plan/plan_search.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/studies/plan/plan_batches.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

PlanQuestion small_question() {
  PlanQuestion question;
  question.data = source_data();
  question.source = "plan";
  question.settings = {{"model", "llama-3.2-1b"},
                       {"cluster", "{node: h100-8}"},
                       {"stack", "megatron"},
                       {"job.sequence", "2048"}};
  question.batch = 32;
  return question;
}

// Ends when so many plans have been replayed, or a few more.
PlanAnswer answer_after(const PlanSpace& space, PlanSearch search, std::size_t replays) {
  std::size_t replayed = 0;
  search.tell = [&](const SoFar& so_far) { replayed = std::max(replayed, so_far.replayed); };
  search.interrupted = [&] { return replayed >= replays; };
  return search_plans(space, search);
}

}  // namespace

TEST_CASE("no plan that a search has left open is better than it says", "[analysis][slow]") {
  const PlanQuestion question = small_question();
  const PlanSpace space = plan_space(question);
  const PlanSearch all{.data = question.data, .samples = 0, .prune = false};
  const PlanAnswer whole = search_plans(space, all);
  CHECK(whole.open.plans == 0);
  const PlanSearch search{.data = question.data, .samples = 0};
  for (const std::size_t replays : {1u, 3u, 9u}) {
    const PlanAnswer cut = answer_after(space, search, replays);
    CAPTURE(replays, cut.replayed, cut.open.plans);
    REQUIRE(cut.open.plans > 0);
    CHECK(cut.open.interrupted);
    CHECK(cut.replayed >= replays);
    CHECK(cut.plans == cut.replayed + cut.too_large + cut.too_slow + cut.open.plans);
    for (const SweepRow& row : whole.table.rows) {
      const bool replayed = std::ranges::binary_search(cut.replays, row.index);
      if (row.outcome.feasible && !replayed && cut.best.size() < search.top)
        CHECK(goal_of(row.outcome, search.goal) >= cut.open.least);
    }
  }
}

TEST_CASE("a search that goes on finds what one that was not cut short finds", "[analysis]") {
  const PlanQuestion question = small_question();
  const PlanSpace space = plan_space(question);
  const TemporaryFolder folder;
  PlanSearch search{.data = question.data, .samples = 0, .journal = folder.file("journal")};
  const PlanAnswer cut = answer_after(space, search, 2);
  const PlanAnswer on = search_plans(space, search);
  search.journal.clear();
  const PlanAnswer whole = search_plans(space, search);
  CHECK(cut.open.plans > 0);
  CHECK(on.open.plans == 0);
  REQUIRE(on.best.size() == whole.best.size());
  for (std::size_t i = 0; i < on.best.size(); ++i) CHECK(on.best[i].plan == whole.best[i].plan);
}

TEST_CASE("time ends a search, too", "[analysis]") {
  const PlanQuestion question = small_question();
  const PlanSpace space = plan_space(question);
  const PlanAnswer none =
      search_plans(space, {.data = question.data, .samples = 0, .within = 1e-9});
  CHECK(none.best.empty());
  CHECK(none.replayed == 0);
  CHECK(none.open.plans == none.plans - none.too_large);
  CHECK(!none.open.interrupted);
  const PlanAnswer enough =
      search_plans(space, {.data = question.data, .samples = 0, .within = 1e9});
  CHECK(enough.open.plans == 0);
  CHECK(enough.best.size() == 5);
}

TEST_CASE("batches beside one are those that more GPUs divide", "[analysis]") {
  CHECK(batches_beside(512, 56, true) == std::vector<std::int64_t>{504});
  CHECK(batches_beside(500, 104, true) == std::vector<std::int64_t>{520});
  CHECK(batches_beside(512, 64, false).empty());
  CHECK(batches_beside(512, 16384, true).empty());
  const std::vector<std::int64_t> all = batches_beside(512, 56, false);
  REQUIRE(!all.empty());
  CHECK(all.front() == 504);
  CHECK(std::ranges::all_of(all, [](std::int64_t rows) { return std::abs(rows - 512) <= 25; }));
}

// 512 rows share no 7 with 56 GPUs: only stages do, or nothing.
TEST_CASE("a batch that divides better gives more", "[analysis][slow]") {
  PlanQuestion question = small_question();
  question.settings[0].second = "llama-3.1-8b";
  question.settings[1].second = "{node: superpod-h100, nodes: 7}";
  question.settings[3].second = "8192";
  question.batch = 512;
  const PlanSpace space = plan_space(question);
  const PlanSearch search{.data = question.data, .samples = 0, .free = 0.09};
  const PlanAnswer answer = search_plans(space, search);
  const std::vector<OtherBatch> better = better_batches(question, space, search, answer, true);
  REQUIRE(better.size() == 1);
  CHECK(better.front().rows == 504);
  CHECK(better.front().gain > 0.1);
  // By the rates of both, too.
  const double rate = better.front().outcome.of("tokens_per_second_per_gpu").value_or(0);
  const double own = answer.best.front().outcome.of("tokens_per_second_per_gpu").value_or(1);
  CHECK(std::abs(rate / own - 1 - better.front().gain) < 1e-6);
}

}  // namespace stepsim
