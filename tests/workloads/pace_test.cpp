#include "workloads/step/pace.hpp"

#include "tests/support/exactly.hpp"

namespace stepsim {
namespace {

// Launches of 1 s for kernels of 3 s, and a read-back of 2 s.
Pace pass() {
  Pace pace;
  pace.run(1, 3);
  pace.run(1, 3);
  pace.drain(2);
  return pace;
}

}  // namespace

TEST_CASE("the host runs ahead of the device until it reads", "[workloads]") {
  const RankClock end = pass()({});
  CHECK_THAT(end.kernel, exactly(7));  // launched at 1, then back to back
  CHECK_THAT(end.host, exactly(9));
  CHECK_THAT(end.last(), exactly(9));
}

TEST_CASE("passes that follow each other are the product of their paces", "[workloads]") {
  Pace two = pass();
  two.go_on(pass());
  const RankClock one_by_one = pass()(pass()({}));
  CHECK_THAT(two({}).host, exactly(one_by_one.host));
  CHECK_THAT(one_by_one.host, exactly(18));  // the device stands still while the host reads
  RankClock many;
  for (int i = 0; i < 11; ++i) many = pass()(many);
  CHECK_THAT(pass().repeated(11)({}).last(), exactly(many.last()));
}

TEST_CASE("kernels wait for messages, and the host only for answers", "[workloads]") {
  Pace pace;
  pace.run(1, 3);
  pace.collective(1, 5);  // begins at 4
  CHECK_THAT(pace({}).host, exactly(2));
  CHECK_THAT(pace({}).ready, exactly(9));
  pace.drain(0);  // of kernels alone
  CHECK_THAT(pace({}).host, exactly(4));
  pace.spend(2);
  pace.run(1, 1);
  CHECK_THAT(pace({}).host, exactly(7));
  CHECK_THAT(pace({}).kernel, exactly(10));
}

TEST_CASE("what is known of pieces is that they come one after the other", "[workloads]") {
  Pace launches, kernels;
  launches.run_apart(5, 3);
  kernels.run_apart(3, 5);
  CHECK_THAT(launches({}).kernel, exactly(5));
  CHECK_THAT(kernels({}).kernel, exactly(5));
}

TEST_CASE("stages end when the last has had its turns", "[workloads]") {
  PacedPiece piece;
  piece.forward.run(0, 1);
  piece.backward.run(0, 2);
  const PipelineParallel pipeline{.size = 4, .layers = {}};
  const std::vector<std::vector<PacedPiece>> stages(4, std::vector<PacedPiece>{piece});
  const auto end = [&](bool stops, const StageCosts& costs) {
    return end_of_turns(pipeline, stages, 8, {.stops = stops, .paired = false}, costs);
  };
  CHECK_THAT(end(false, {}), exactly((8 + 3) * 3));
  CHECK_THAT(end(true, {}), exactly((8 + 3) * 3));
  CHECK(end(true, {.post = 0, .sync = 0.5}) > (8 + 3) * 3.5);
}

}  // namespace stepsim
