#include "workloads/pipeline/turns.hpp"

#include <algorithm>
#include <utility>

#include "tests/support/catch.hpp"

using namespace stepsim;
using Catch::Equals;

namespace {

StageAct run_of(Pass pass, std::int64_t micro_batch) {
  return {.kind = StageAct::Kind::run, .turn = {.pass = pass, .micro_batch = micro_batch}};
}

}  // namespace

TEST_CASE("stages do their acts in order, each when the others let it", "[workloads]") {
  const std::vector<std::vector<StageAct>> acts{
      {run_of(Pass::forward, 0), run_of(Pass::forward, 1)},
      {run_of(Pass::forward, 0), run_of(Pass::forward, 1)}};
  std::vector<std::pair<std::int64_t, std::int64_t>> order;
  const auto has_run = [&](std::int64_t stage, std::int64_t micro_batch) {
    return std::ranges::count(order, std::pair{stage, micro_batch}) > 0;
  };
  take_turns(acts, [&](std::int64_t stage, const StageAct& act) {
    if (stage == 0 && !has_run(1, act.turn.micro_batch)) return false;  // the last goes first
    order.emplace_back(stage, act.turn.micro_batch);
    return true;
  });
  CHECK(order ==
        std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 0}, {1, 1}, {0, 0}, {0, 1}});
}

TEST_CASE("stages that wait for each other are named with their acts", "[workloads]") {
  const std::vector<std::vector<StageAct>> acts{{run_of(Pass::forward, 3)},
                                                {run_of(Pass::backward, 2)}};
  CHECK_THROWS_WITH(take_turns(acts, [](std::int64_t, const StageAct&) { return false; }),
                    Equals("the stages of the pipeline wait for each other: stage 0 is to run "
                           "micro-batch 3 of piece 0, forward; stage 1 is to run micro-batch 2 of "
                           "piece 0, backward"));
}
