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

TEST_CASE("a stage sends one message after the other", "[workloads]") {
  PacedPiece piece;
  piece.forward.run(0, 1);
  piece.backward.run(0, 2);
  const PipelineParallel pipeline{.size = 2, .schedule = PipelineSchedule::gpipe, .layers = {}};
  const std::vector<std::vector<PacedPiece>> stages(2, std::vector<PacedPiece>{piece});
  const auto end = [&](double message) {
    return end_of_turns(pipeline, stages, 8, {}, {.messages = {message, message}});
  };
  // Slow messages decide: eight forward, and eight back from the first pass backward on.
  CHECK_THAT(end(10), exactly(1 + 8 * 10 + 1 + 2 + 8 * 10 + 2));
  CHECK_THAT(end(0), exactly((8 + 1) * 3));
}

TEST_CASE("parameters come under the first pass forward, gradients go under the last one backward",
          "[workloads]") {
  PacedPiece piece;
  piece.forward.run(0, 1);
  piece.backward.run(0, 2);
  const PipelineParallel pipeline{.size = 2, .layers = {}};
  const std::vector<std::vector<PacedPiece>> stages(2, std::vector<PacedPiece>{piece});
  const auto end = [&](const StageTraffic& traffic) {
    return end_of_turns(pipeline, stages, 8, {}, {}, {traffic, {}});
  };
  const double alone = (8 + 1) * 3;
  CHECK_THAT(end({.before = 1, .behind = 2, .in_backward = true}), exactly(alone));
  CHECK_THAT(end({.before = 11}), exactly(alone + 10));
  CHECK_THAT(end({.behind = 12, .in_backward = true}), exactly(alone + 10));
  CHECK_THAT(end({.behind = 12}), exactly(alone + 12));
}

TEST_CASE("passes in pairs take as long as their kernels, their host or their tokens",
          "[workloads]") {
  PacedPiece piece;
  const auto of = [&](double host, double kernels, double exchange) {
    Pace pass;
    pass.run(host, kernels);
    pass.collective(0, exchange);
    piece.forward = piece.backward = pass;
    piece.ahead = piece.back = {host, kernels, exchange};
    return end_of_pairs(piece, 10);
  };
  // The first and the last pass are alone, and wait for their tokens.
  CHECK_THAT(of(0, 3, 1), exactly(4 + 9 * 6 + 4));
  CHECK_THAT(of(5, 1, 1), exactly(5 + 9 * 10 + 5 + 1 + 1));
  CHECK_THAT(of(0, 1, 4), exactly(20 * 4 + 1));  // one behind the other, from the first kernel on
}

TEST_CASE("stages whose passes run in pairs end no later than those that wait for tokens",
          "[workloads]") {
  PacedPiece piece;
  for (Pace* pass : {&piece.forward, &piece.backward}) {
    pass->run(0, 1);
    pass->collective(0, 0.5);
  }
  piece.ahead = piece.back = {0, 1, 0.5};
  const PipelineParallel pipeline{
      .size = 2, .schedule = PipelineSchedule::interleaved, .virtual_stages = 2, .layers = {}};
  const std::vector<std::vector<PacedPiece>> stages(2, std::vector<PacedPiece>(2, piece));
  const auto end = [&](bool paired) {
    return end_of_turns(pipeline, stages, 8, {.stops = false, .paired = paired}, {});
  };
  const double kernels = 2 * 8 * 2;  // of a stage
  CHECK(end(true) > kernels);
  CHECK(end(true) < end(false));
  CHECK(end(false) > 1.5 * kernels);
}

}  // namespace stepsim
