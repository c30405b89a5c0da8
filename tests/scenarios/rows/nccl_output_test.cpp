#include "scenarios/rows/nccl_output.hpp"

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;

namespace {

const std::string ranks =
    "#  Rank  0 Group  0 Pid  1 on     node-1 device  0 [0000:0f:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid  2 on     node-2 device  0 [0000:0f:00] NVIDIA H100 80GB HBM3\n";
const std::string heading =
    "#                                              out-of-place               in-place\n"
    "#   size   count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
    "#    (B)  (elements)                 (us)  (GB/s) (GB/s)        (us)  (GB/s) (GB/s)\n";
const std::string start = "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1\n";
const std::string lines =
    "   0   0  float  sum  -1  5.1  0.00  0.00  0  5.0  0.00  0.00  0\n"
    "NCCL INFO what a library says between\n"
    "   1048576  262144  float  sum  -1  62.10  16.89  29.55  0  61.80  16.97  29.69  0\n"
    "   4194304  1048576  float  sum  -1  95.30  44.01  77.02  N/A  94.9  44.2  77.35  N/A\n";

std::string problem_of(const std::string& text, const std::string& file = "out.txt") {
  try {
    read_nccl_output(text, file);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("output of nccl-tests is rows of its sizes, out of place", "[scenarios]") {
  const std::string text = start + ranks + heading + lines + "# Avg bus bandwidth : 50\n";
  REQUIRE(is_nccl_output(text));
  const std::vector<MeasuredCollective> rows = read_nccl_output(text, "runs/out.txt");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].collective == "all_reduce");
  CHECK(rows[0].bytes == 1048576);
  CHECK(rows[0].time == Approx(62.1e-6));
  CHECK(rows[0].gpus == 2);
  CHECK(rows[0].nodes == 2);
  CHECK(rows[0].hardware == "NVIDIA H100 80GB HBM3");
  CHECK(rows[0].source == "out.txt");
  CHECK(rows[1].time == Approx(95.3e-6));
}

TEST_CASE("the file's name says which collective an older release measured", "[scenarios]") {
  const std::string text = "# nThread 1 nGpus 2\n" + ranks + heading + lines;
  CHECK(read_nccl_output(text, "sendrecv-h100.txt").front().collective == "send_recv");
  CHECK(read_nccl_output(text, "alltoall.log").front().collective == "all_to_all");
  CHECK(problem_of(text) ==
        "out.txt: does not say which collective it measured; put its name into the file's, such "
        "as all_reduce.txt");
}

TEST_CASE("output that is cut short says where", "[scenarios]") {
  CHECK(problem_of(start + ranks + heading) == "out.txt: no line holds a size and a time");
  CHECK(problem_of(start + heading + lines) ==
        "out.txt: does not list its ranks: keep the lines that begin with \"#\"");
  CHECK(problem_of(start + ranks + heading + "   1024  256  float\n") ==
        "out.txt:8: the line ends before its time");
  CHECK(problem_of(start + ranks + heading + "   1024  256  float  sum  -1  fast  1 1 0\n") ==
        "out.txt:8: time: expected microseconds, found \"fast\"");
}

TEST_CASE("tables are not taken for output of nccl-tests", "[scenarios]") {
  CHECK_FALSE(is_nccl_output("id,collective,hardware,algbw_GBps,busbw_GBps\n"));
  CHECK_FALSE(is_nccl_output(""));
}
