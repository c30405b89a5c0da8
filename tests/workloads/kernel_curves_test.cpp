// Times of single kernels against published measurements, and the laws that they have to keep.
#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "topology/catalog.hpp"
#include "workloads/kernels/kernels.hpp"

using namespace stepsim;

namespace {

const Catalogue& data = source_data();

// A stack that reaches what the GPU's file says, and clocks that do not fall: single kernels.
struct Bench {
  Gpu gpu;
  Stack stack;

  explicit Bench(const std::string& node) : gpu(load_cluster(data, {.name = node}).gpu) {
    gpu.gemm.sustained.value = {1};
    stack.operators = read_operators(read_document(data.file("workloads/operators.yaml")).root());
    stack.kernels.gemm.value = stack.kernels.attention.value = {1};
    stack.kernels.memory.value = stack.kernels.grouped_gemm.value = {1};
  }
  double time(const KernelRow& row) const { return device_time(gpu, stack, {row}, false).value; }
};

KernelRow attention_row(double tokens, double head) {
  return attention("attention", 16 * 16384, tokens / 2, 1, head);
}

}  // namespace

TEST_CASE("no product beats the peak, and one more row never makes it shorter by much",
          "[workloads]") {
  const Bench bench("h100-8");
  for (const double width : {64.0, 1024.0, 8192.0}) {
    double before = 0;
    for (double rows = 16; rows < 40000; rows *= 1.7) {
      const KernelRow row = gemm("product", std::floor(rows), 4096, width);
      const double time = bench.time(row);
      CHECK(row.flops / time < bench.gpu.peak.bf16.value.value);
      CHECK(time >= 0.999 * before);
      before = time;
    }
  }
}

TEST_CASE("one tile more than a full wave costs more than its share", "[workloads]") {
  const Bench bench("a100-8");
  // 108 units: one wave of 12 x 9 tiles, and one tile more in each column.
  const double full = bench.time(gemm("product", 256 * 12, 8192, 128 * 9));
  const double more = bench.time(gemm("product", 256 * 12 + 1, 8192, 128 * 9));
  CHECK(more > 1.05 * full);
}

TEST_CASE("a grouped product of few tiles takes as long as one of them", "[workloads]") {
  // The gradient of an adapter: a sum over all tokens, 8 tiles of 128 rows for 132 units. A library
  // cuts the depth; a grouped kernel does not, so half of the tiles are no faster.
  const Bench bench("h100-8");
  const auto grouped = [&](double out) {
    return bench.time(grouped_gemm("up", 1, out, 16384, 16));
  };
  const double start = bench.gpu.gemm.start.value.value;
  CHECK(grouped(1024) - start == Approx(grouped(512) - start));
  CHECK(grouped(1024) > 2 * bench.time(gemm("up", 1024, 16384, 16)));
}

TEST_CASE("tiles of a grouped kernel wait for operands that each of them reads", "[workloads]") {
  Bench bench("mi300x-8");
  REQUIRE(bench.gpu.gemm.grouped);
  // Whole tiles of 128 x 256: depth x (128 + 256) numbers for each of 8 x 6 in 128 groups.
  const KernelRow row = grouped_gemm("product", 128, 1024, 4096, 1536);
  const double read = 2.0 * 128 * 8 * 6 * 4096 * (128 + 256);
  const double waiting = read / bench.gpu.gemm.grouped->operands.number();
  CHECK(bench.time(row) == Approx(waiting + bench.gpu.gemm.start.number()));
  bench.gpu.gemm.grouped->operands.value = {1e15};  // none waits
  CHECK(bench.time(row) < 0.7 * waiting);
  bench.gpu.gemm.grouped.reset();
  CHECK(bench.time(row) < 0.7 * waiting);
}

TEST_CASE("longer rows and wider heads make better use of an attention kernel", "[workloads]") {
  const Bench bench("a100-8");
  const auto rate = [&](double tokens, double head) {
    const KernelRow row = attention_row(tokens, head);
    return row.flops / (bench.time(row) - bench.gpu.gemm.start.value.value);
  };
  const Gpu::Attention::Kernel& flash = bench.gpu.attention.flash;
  CHECK(rate(4096, 128) == Approx(flash.forward.value.value).epsilon(1e-4));
  CHECK(rate(512, 128) < 0.7 * rate(16384, 128));
  CHECK(rate(4096, 64) / rate(4096, 128) == Approx(0.87).margin(0.04));
  CHECK(rate(4096, 256) == Approx(flash.wide.value.value * rate(4096, 128)));
  CHECK(rate(1 << 20, 256) < bench.gpu.peak.bf16.value.value);
}

TEST_CASE("an attention kernel of few blocks leaves units without work", "[workloads]") {
  const Bench bench("a100-8");
  const auto rate = [&](double heads) {
    const KernelRow row = attention("attention", 4096, 2048, heads, 128);
    return row.flops / (bench.time(row) - bench.gpu.gemm.start.value.value);
  };
  // Of so many queries for each unit as one has nothing of at the end, half the time goes by
  // unused.
  const double tail = bench.gpu.attention.tail.value.value * bench.gpu.units / 4096;
  CHECK(rate(tail) == Approx(rate(1e6 * tail) / 2).epsilon(1e-3));
  for (double heads = 1; heads < 1000; heads *= 2) CHECK(rate(heads) < rate(2 * heads));
}

TEST_CASE("an attention kernel of this generation is faster where there is one", "[workloads]") {
  const auto times = [](const char* node) {
    const Bench bench(node);
    KernelRow row = attention_row(4096, 128);
    const double flash = bench.time(row);
    row.later = true;
    return flash / bench.time(row);
  };
  CHECK(times("h100-8") > 1.5);
  CHECK(times("a100-8") == 1);
}

TEST_CASE("the backward pass of a product is two products of its shape", "[workloads]") {
  const std::vector<KernelRow> backward = backward_of({gemm("product", 512, 1024, 2048)}, {});
  REQUIRE(backward.size() == 2);
  CHECK(flops_of(backward) == 4.0 * 512 * 1024 * 2048);
  CHECK(backward[0].width == 1024);
  CHECK(backward[0].depth == 2048);
  CHECK(backward[1].rows == 1024);
  CHECK(backward[1].depth == 512);
}

TEST_CASE("products of 32-bit numbers run at the rate of the units that take them", "[workloads]") {
  const Bench bench("mi250x-8");
  KernelRow row = gemm("logits", 1 << 15, 4096, 1 << 15);
  const double start = bench.gpu.gemm.start.value.value, in_16 = bench.time(row) - start;
  row.type = ProductType::tf32;
  const double slower = bench.gpu.peak.bf16.value / bench.gpu.peak.tf32.value;
  CHECK(slower > 3);
  CHECK(bench.time(row) - start == Approx(slower * in_16));
}

TEST_CASE("clocks fall under a kernel that runs for long, where a GPU's file says so",
          "[workloads]") {
  const auto rate = [](const Bench& bench, double tokens) {
    KernelRow row = attention("attention", tokens, tokens / 2, 8, 128);
    row.later = true;
    return row.flops / bench.time(row);
  };
  const Bench settles("b200-8"), holds("h100-8");
  CHECK(rate(settles, 131072) < 0.9 * rate(settles, 32768));
  CHECK(rate(holds, 131072) > rate(holds, 32768));
  // Published: 1128 and 1352 TFLOP/s.
  CHECK(std::abs(rate(settles, 131072) / 1128e12 - 1) < 0.08);
  CHECK(std::abs(rate(settles, 32768) / 1352e12 - 1) < 0.08);
}

TEST_CASE("operands out of line leave the units for matrices, where a GPU's file says so",
          "[workloads]") {
  KernelRow row = gemm("scores", 8192, 128, 8192);
  const auto slower = [&](const Bench& bench) {
    row.unaligned = false;
    const double in_line = bench.time(row);
    row.unaligned = true;
    return bench.time(row) / in_line;
  };
  CHECK(slower(Bench("a100-8")) > 5);
  CHECK(slower(Bench("h100-8")) == 1);
}

TEST_CASE("what a large cache holds moves faster, and more bytes never take less", "[workloads]") {
  const Bench bench("l40s-8");
  const double memory_rate = bench.gpu.elementwise.bandwidth.number();
  const double start = bench.gpu.elementwise.start.number();
  CHECK(bench.time(memory("copy", 20e6, 1)) < start + 0.7 * 20e6 / memory_rate);
  CHECK(bench.time(memory("copy", 200e6, 1)) == Approx(start + 200e6 / memory_rate));
  CHECK(bench.time(memory("copies", 200e6, 10)) < 10 * start + 0.7 * 200e6 / memory_rate);
  for (double bytes = 1e6; bytes < 300e6; bytes *= 1.1)
    CHECK(bench.time(memory("copy", 1.1 * bytes, 1)) > bench.time(memory("copy", bytes, 1)));
}
