// Published kernels against the GPUs' files.
#include "analysis/studies/fidelity/kernel_tables.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "topology/catalog.hpp"

using namespace stepsim;

namespace {

const Catalogue& data = source_data();

CsvTable published() {
  return read_csv(data.file("scenarios/measured/gemm.csv"));
}

CsvTable table_of(const std::string& rows) {
  return parse_csv("id,source,hardware,op,dtype,batch,M,N,K,layout,time_ms,tflops\n" + rows,
                   "kernels.csv");
}

CsvTable attention_table() {
  return read_csv(data.file("scenarios/measured/attention.csv"));
}

PredictedKernels predict(const CsvTable& table) {
  return predict_kernels(data, {&table, 1});
}

// Which of them are there, and how near they have to be.
struct Families {
  std::vector<KernelFamily> all;

  void operator()(const char* name, std::size_t rows, double median, double ninth) const {
    CAPTURE(name);
    const auto family =
        std::find_if(all.begin(), all.end(), [&](const KernelFamily& f) { return f.name == name; });
    REQUIRE(family != all.end());
    CHECK(family->rows == rows);
    CHECK(family->median < median);
    CHECK(family->p90 < ninth);
  }
};

}  // namespace

TEST_CASE("matrix products are as fast as measured", "[analysis]") {
  const Families check{families_of(predict(published()).kernels)};
  check("h100-sxm gemm", 97, 0.06, 0.16);
  check("a100-sxm-80 gemm", 52, 0.05, 0.12);
  // Nothing but the cost of small tiles was taken from these.
  check("a100-pcie gemm", 31, 0.03, 0.19);
  check("a100-pcie gemm for inputs", 30, 0.03, 0.08);
  check("a100-pcie gemm for weights", 31, 0.07, 0.12);
}

TEST_CASE("grouped products wait for what their tiles read, where a GPU's file says so",
          "[analysis]") {
  const Families check{families_of(predict(published()).kernels)};
  check("mi300x grouped_gemm", 32, 0.06, 0.15);
}

TEST_CASE("a rate says the same as a time, a batch the same as more rows", "[analysis]") {
  const PredictedKernels times =
      predict(table_of("a,s,H100-80GB SXM,gemm,bf16,,4096,4096,4096,,0.2,\n"
                       "b,s,H100-80GB SXM,gemm,bf16,,4096,4096,4096,,,687.19476736\n"
                       "c,s,H100-80GB SXM,batched_gemm,bf16,4,1024,4096,4096,,0.2,\n"));
  REQUIRE(times.kernels.size() == 3);
  CHECK(times.kernels[1].measured == Approx(times.kernels[0].measured));
  CHECK(times.kernels[1].predicted == times.kernels[0].predicted);
  CHECK(times.kernels[2].predicted == Approx(times.kernels[0].predicted));
}

TEST_CASE("rows that are no such kernel are named with the reason", "[analysis]") {
  const PredictedKernels times =
      predict(table_of("a,s,Abacus,gemm,bf16,,64,64,64,,1,\nb,s,H100,softmax,bf16,,64,64,64,,1,\n"
                       "c,s,H100,gemm,bf16,,64,64,64,,,\n"));
  CHECK(times.kernels.empty());
  REQUIRE(times.skipped.size() == 3);
  CHECK(times.skipped[0].reason == "no GPU \"Abacus\" in the catalogue");
  CHECK(times.skipped[1].reason == "softmax is no matrix product or attention of known shape");
  CHECK(times.skipped[2].reason == "no time");
  CHECK_THROWS_WITH(predict(table_of("a,s,H100,gemm,bf16,,wide,64,64,,1,\n")),
                    "kernels.csv:2: M: expected a number, found \"wide\"");
}

TEST_CASE("attention is as fast as measured", "[analysis]") {
  const Families check{families_of(predict(attention_table()).kernels)};
  check("a100-sxm-80 attention flash2", 65, 0.04, 0.17);
  check("mi300x attention aiter", 10, 0.04, 0.08);
  check("mi300x attention AITER asm v3 (fmha_v3)", 47, 0.05, 0.15);
  check("mi300x attention AITER asm v3 (fmha_v3) backward", 94, 0.075, 0.18);
  check("h100-sxm attention flash3", 18, 0.05, 0.15);
  check("b200 attention flashinfer", 28, 0.12, 0.30);
}

TEST_CASE("a long run of products is held against what a GPU sustains", "[analysis]") {
  const std::string columns =
      "id,source,hardware,op,dtype,batch,M,N,K,layout,extra,time_ms,tflops\n";
  const std::string product = "s,B200 SXM,gemm,bf16,1,8192,8192,8192,TN,";
  const PredictedKernels times = predict(parse_csv(
      columns + "short," + product + ",,1000\nlong," + product + "long run,,1000\n", "long.csv"));
  REQUIRE(times.kernels.size() == 2);
  const double sustained = KernelBench(load_cluster(data, {.name = "b200-8"}).gpu, {}).sustained;
  CHECK(sustained < 0.8);
  CHECK(times.kernels[0].predicted == Approx(sustained * times.kernels[1].predicted).epsilon(0.02));
  // In short runs nothing beats the fastest cube.
  const Families check{families_of(predict(published()).kernels)};
  check("b200 gemm", 35, 0.05, 0.32);
  check("b200 gemm for inputs", 28, 0.10, 0.25);
  check("h100-sxm grouped_gemm", 4, 0.10, 0.20);
}

TEST_CASE("kernels that a GPU's file knows nothing of are left out", "[analysis]") {
  const std::string columns =
      "id,source,hardware,op,kernel,batch,queries,keys,heads,head_dim,causal,time_ms\n";
  const PredictedKernels times = predict(
      parse_csv(columns + "a,s,A100-80GB SXM,attention_fwd,flash3,1,4096,4096,32,128,yes,1\n"
                          "b,s,A100-80GB SXM,attention_fwd,flash2,1,4096,4096,32,128,,1\n"
                          "c,s,A100-80GB SXM,attention_fwd,flash2,1,4096,4096,32,128,yes,1\n"
                          "d,s,A100-80GB SXM,attention_fwd,flash2,1,4096,2048,32,128,no,1\n",
                "attention.csv"));
  REQUIRE(times.skipped.size() == 2);
  CHECK(times.skipped[0].reason == "the kernel \"flash3\" has no rates in the GPU's file");
  CHECK(times.skipped[1].reason == "attention_fwd is no attention of known shape");
  REQUIRE(times.kernels.size() == 2);
  CHECK(times.kernels[0].predicted == Approx(times.kernels[1].predicted));  // as many pairs
}
