// What a step waits for, on traces written by hand.
#include "analysis/critical_path.hpp"

#include <numeric>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"

namespace stepsim {
namespace {

// A program and its trace, both at once: an operation begins when all that it waits for is done.
struct Played {
  OpGraph graph;
  Trace trace;

  OpId add(Op op, double seconds, const std::vector<OpId>& after = {}) {
    double start = 0;
    for (const OpId from : after) start = std::max(start, trace.finish[index(from)]);
    trace.start.push_back(start);
    trace.finish.push_back(start + seconds);
    trace.makespan.value = std::max(trace.makespan.value, start + seconds);
    return graph.add(op, after);
  }
};

Op placed(Phase phase, std::int16_t layer, std::int16_t micro_batch, Cause cause) {
  Op op = compute_op(0, 1);
  op.phase = phase;
  op.layer = layer;
  op.micro_batch = micro_batch;
  op.cause = cause;
  return op;
}

double sum(const std::vector<PathPart>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0, [](double total, const PathPart& part) {
    return total + part.seconds.value;
  });
}

// Forward and backward over layers that compute 2 s each; in the last one of two a gather takes 5.
Played two_layers(int micro_batches) {
  Played played;
  OpId last = played.add(placed(Phase::other, -1, 0, Cause::other), 0.5);
  for (std::int16_t micro = 0; micro < micro_batches; ++micro) {
    for (std::int16_t layer = 0; layer < 2; ++layer) {
      const OpId gather = played.add(placed(Phase::forward, layer, micro, Cause::gather_bytes),
                                     layer == 1 ? 5 : 1, {last});
      const OpId compute =
          played.add(placed(Phase::forward, layer, micro, Cause::compute), 2, {last});
      last =
          played.add(placed(Phase::forward, layer, micro, Cause::launch), 0.1, {gather, compute});
    }
    for (std::int16_t layer = 2; layer-- > 0;) {
      last = played.add(placed(Phase::recompute, layer, micro, Cause::recompute), 1, {last});
      last = played.add(placed(Phase::backward, layer, micro, Cause::compute), 3, {last});
    }
  }
  return played;
}

}  // namespace

TEST_CASE("the critical path leads from the start to the end without a hole", "[analysis]") {
  const Played played = two_layers(2);
  const std::vector<OpId> path = critical_path(played.graph, played.trace);
  CHECK(played.trace.start[index(path.front())] == 0);
  for (std::size_t i = 1; i < path.size(); ++i)
    CHECK(played.trace.start[index(path[i])] == played.trace.finish[index(path[i - 1])]);
  CHECK(played.trace.finish[index(path.back())] == played.trace.makespan.value);
  const auto parts = path_parts(played.graph, played.trace, 2);
  CHECK_THAT(sum(parts), exactly(played.trace.makespan.value));
  CHECK_THAT(sum(folded(parts)), exactly(played.trace.makespan.value));
}

TEST_CASE("layers that wait for the same are one part, and micro-batches that go alike are too",
          "[analysis]") {
  const Played played = two_layers(3);
  const std::vector<PathPart> parts = folded(path_parts(played.graph, played.trace, 2));
  REQUIRE(parts.size() == 4);
  CHECK(title_of(parts[0]) == "other");
  CHECK(title_of(parts[1]) == "forward, layer 0, micro-batches 0 to 2");
  CHECK(title_of(parts[2]) == "forward, layer 1, micro-batches 0 to 2");
  CHECK(title_of(parts[3]) == "backward, layers 1 to 0, micro-batches 0 to 2");
  CHECK(parts[1].causes.front().first == Cause::compute);
  CHECK(parts[2].causes.front().first == Cause::gather_bytes);
  CHECK_THAT(parts[2].seconds.value, exactly(3 * 5.1));
  CHECK(parts[3].causes ==
        std::vector<std::pair<Cause, Seconds>>{{Cause::compute, {18}}, {Cause::recompute, {6}}});
}

TEST_CASE("layers that take turns are one part, a few different ones are not", "[analysis]") {
  const std::int16_t layers = GENERATE(as<std::int16_t>{}, 5, 12);
  Played played;
  const auto cause = [](std::int16_t layer) {
    return layer % 2 == 0 ? Cause::launch : Cause::compute;
  };
  std::int16_t layer = layers;
  --layer;
  OpId last = played.add(placed(Phase::backward, layer, 0, cause(layer)), 1);
  while (layer-- > 0) last = played.add(placed(Phase::backward, layer, 0, cause(layer)), 1, {last});
  const std::vector<PathPart> parts = folded(path_parts(played.graph, played.trace, layers));
  CHECK_THAT(sum(parts), exactly(layers));
  if (layers == 5) CHECK(parts.size() == 5);
  if (layers == 12) {
    REQUIRE(parts.size() == 1);
    CHECK(title_of(parts.front()) == "backward, layers 11 to 0");
  }
}

TEST_CASE("what lies behind the last layer is outside of them", "[analysis]") {
  Played played;
  const OpId layer = played.add(placed(Phase::forward, 1, 0, Cause::compute), 1);
  played.add(placed(Phase::forward, 2, 0, Cause::compute), 1, {layer});
  const std::vector<PathPart> parts = path_parts(played.graph, played.trace, 2);
  REQUIRE(parts.size() == 2);
  CHECK(title_of(parts[1]) == "forward");
}

TEST_CASE("two steps part where the first stretch differs", "[analysis]") {
  const Played one = two_layers(1);
  const auto a = path_parts(one.graph, one.trace, 2);
  CHECK(first_difference(a, a, {0.01}) == a.size());
  auto b = a;
  b[2].seconds += Seconds{0.5};
  CHECK(first_difference(a, b, {0.01}) == 2);
  CHECK(first_difference(a, b, {0.6}) == a.size());
  b = a;
  b[1].first_layer = 7;
  CHECK(first_difference(a, b, {10}) == 1);
}

}  // namespace stepsim
