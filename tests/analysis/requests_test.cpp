#include "analysis/requests.hpp"

#include <stdexcept>
#include <tuple>

#include "tests/support/catch.hpp"
#include "tests/support/tiny_program.hpp"

using namespace stepsim;

namespace {

struct Changes {
  OpGraph graph;
  Timeline timeline;

  void add(double bytes, std::string_view tensor_class = "activations", std::int16_t layer = -1) {
    Op op = compute_op(0, 1);
    op.layer = layer;
    timeline.push_back({0, Pool::device, "forward", "op", tensor_class, bytes, graph.add(op, {})});
  }
  // By whom taken, by whom given back, how large.
  std::vector<std::tuple<std::size_t, std::size_t, double>> requests() const {
    std::vector<std::tuple<std::size_t, std::size_t, double>> list;
    for (const Request& each : requests_of(graph, timeline))
      list.emplace_back(each.taken, each.given, each.bytes);
    return list;
  }
};
using List = std::vector<std::tuple<std::size_t, std::size_t, double>>;

}  // namespace

TEST_CASE("what is given back is the request that is as large, of its layer", "[requests]") {
  Changes changes;
  changes.add(4, "activations", 0);
  changes.add(4, "activations", 1);
  changes.add(8, "activations", 1);
  changes.add(4, "gathered", 0);
  changes.add(-4, "activations", 0);
  changes.add(-4, "activations", 7);  // of none: the newest
  CHECK(changes.requests() == List{{0, 4, 4}, {1, 5, 4}, {2, never, 8}, {3, never, 4}});
}

TEST_CASE("what is given back in parts was as many requests", "[requests]") {
  Changes changes;
  changes.add(10);
  changes.add(6);
  changes.add(-8);  // the newest, and 2 of the one before
  changes.add(-8);
  CHECK(changes.requests() == List{{0, 3, 8}, {0, 2, 2}, {1, 2, 6}});
}

TEST_CASE("nothing is given back that nobody took", "[requests]") {
  Changes changes;
  changes.add(4);
  changes.add(-4, "gathered");
  CHECK_THROWS_AS(changes.requests(), std::logic_error);
}
