#include "analysis/memory_timeline.hpp"

#include <array>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_program.hpp"
#include "tests/support/tiny_run.hpp"

using namespace stepsim;

namespace {

using Classes = std::vector<std::pair<std::string, double>>;

// Operations of one second after the other.
struct Line {
  OpGraph graph;
  Trace trace;

  OpId second(std::string_view name) {
    Op op = compute_op(0, 1);
    op.phase = Phase::forward;
    op.name = graph.name(name);
    const double start = static_cast<double>(graph.size());
    trace.start.push_back(start);
    trace.finish.push_back(start + 1);
    return graph.add(op, {});
  }
  void change(OpId op, bool at_start, std::string_view tensor_class, double bytes, Rank rank = 0,
              Pool pool = Pool::device) {
    graph.allocate({op, at_start, pool, rank, graph.name(tensor_class), bytes});
  }
};

}  // namespace

TEST_CASE("the peak is where the most bytes are held, with what they are", "[analysis]") {
  const Run run = tiny_run();
  const MemoryPeak peak = peak_memory(run.graph, run.trace, 0);
  CHECK(peak.bytes == 5e9);
  CHECK(peak.time == 2);  // the gather starts
  CHECK(peak.phase == "forward");
  CHECK(peak.name == "gather weights");
  CHECK(peak.classes == Classes{{"activations", 3e9}, {"weights", 2e9}});
}

TEST_CASE("only the device memory of the rank that is asked for counts", "[analysis]") {
  const Run run = tiny_run();
  const MemoryPeak nothing = peak_memory(run.graph, run.trace, 1);  // it pins host memory
  CHECK(nothing.bytes == 0);
  CHECK(nothing.classes.empty());
  CHECK(nothing.name.empty());
}

TEST_CASE("at one instant what is given back is there for the next operation", "[analysis]") {
  Line line;
  const OpId first = line.second("first"), next = line.second("next");
  line.change(next, true, "new", 2);     // at 1 s, as
  line.change(first, false, "old", -3);  // this
  line.change(first, true, "old", 3);
  line.change(next, false, "new", -2);
  const MemoryPeak peak = peak_memory(line.graph, line.trace, 0);
  CHECK(peak.bytes == 3);
  CHECK(peak.name == "first");
  CHECK(peak.classes == Classes{{"old", 3}});
}

TEST_CASE("an operation takes its own memory before it gives any back", "[analysis]") {
  Line line;
  const OpId only = line.second("only");
  line.change(only, true, "input", 3);
  line.change(only, true, "input", -3);
  line.change(only, true, "output", 2);
  line.change(only, false, "output", -2);
  CHECK(peak_memory(line.graph, line.trace, 0).bytes == 5);
}

TEST_CASE("the first request beyond a limit is the one that fails", "[analysis]") {
  Line line;
  const OpId first = line.second("first"), next = line.second("next");
  line.change(first, true, "a", 4);
  line.change(first, false, "a", -4);
  line.change(next, true, "b", 3);
  line.change(next, true, "c", 3);
  line.change(next, true, "pinned", 9, 0, Pool::pinned);
  const std::array device{Pool::device};
  const Timeline timeline = timeline_of(line.graph, line.trace, 0);
  const MemoryReading reading = read_timeline(timeline, device, 5);
  REQUIRE(reading.failed);
  CHECK(reading.failed->tensor_class == "c");
  CHECK(reading.failed->bytes == 3);
  CHECK(reading.failed->before == 3);
  CHECK(reading.failed->moment == "forward");
  CHECK(reading.highest_of("a") == 4);
  CHECK(!read_timeline(timeline, device, 6).failed);
}

TEST_CASE("of equal peaks the first is named, and a class that is gone is not", "[analysis]") {
  Line line;
  const OpId first = line.second("first"), next = line.second("next"), last = line.second("last");
  line.change(first, true, "a", 4);
  line.change(first, true, "a", -4);
  line.change(next, true, "b", 4);
  line.change(next, true, "b", -4);
  line.change(last, true, "a", 1);
  const MemoryPeak peak = peak_memory(line.graph, line.trace, 0);
  CHECK(peak.name == "first");
  CHECK(peak.classes == Classes{{"a", 4}});
}

TEST_CASE("in program order operations follow one another as they were written", "[analysis]") {
  Line line;
  const OpId one = line.second("one"), two = line.second("two");
  line.change(one, true, "x", 2);
  line.change(two, true, "x", 3);
  line.change(one, false, "x", -2);  // written later, but of the first operation
  line.change(two, false, "x", -3);
  const MemoryPeak ordered = peak_memory_in_order(line.graph, 0);
  CHECK(ordered.bytes == 3);
  CHECK(ordered.time == 1);
  line.trace.finish[0] = 1.5;  // it runs into the second
  CHECK(peak_memory(line.graph, line.trace, 0).bytes == 5);
}
