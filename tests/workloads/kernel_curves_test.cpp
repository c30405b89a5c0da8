// Times of single kernels against published measurements, and the laws that they have to keep.
#include <algorithm>
#include <cmath>

#include "scenarios/measured.hpp"
#include "sim/error.hpp"
#include "tests/support/catch.hpp"
#include "topology/catalog.hpp"
#include "workloads/kernels.hpp"

using namespace stepsim;

namespace {

const std::string data = STEPSIM_SOURCE_DATA;

// A stack that reaches what the GPU's file says, and clocks that do not fall: single kernels.
struct Bench {
  Gpu gpu;
  Stack stack;

  explicit Bench(const std::string& node) : gpu(load_cluster(data, {.name = node}).gpu) {
    gpu.gemm.sustained.value = {1};
    stack.kernels.gemm.value = stack.kernels.attention.value = {1};
    stack.kernels.memory.value = stack.kernels.grouped_gemm.value = {1};
  }
  double time(const KernelRow& row) const { return device_time(gpu, stack, {row}, false).value; }
};

double number(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
  const std::string cell(table.cell(row, column));
  return cell.empty() ? 0 : std::stod(cell);
}

// Logarithms of predicted over measured, sorted by size.
std::vector<double> residuals(const Bench& bench, std::string_view hardware) {
  const CsvTable table = read_csv(data + "/scenarios/measured/gemm.csv");
  std::vector<double> sizes;
  for (const CsvTable::Row& row : table.rows) {
    if (table.cell(row, "hardware") != hardware || table.cell(row, "op") != "gemm") continue;
    const double m = number(table, row, "M"), n = number(table, row, "N");
    const double k = number(table, row, "K"), tflops = number(table, row, "tflops");
    if (m <= 0 || tflops <= 0) continue;
    const double measured = 2 * m * n * k / (tflops * 1e12);
    sizes.push_back(std::abs(std::log(bench.time(gemm("product", m, k, n)) / measured)));
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

KernelRow attention_row(double tokens, double head) {
  KernelRow row{"attention", KernelClass::attention, 1e15, 0, 1};
  row.width = head;
  row.depth = tokens / 2;
  return row;
}

}  // namespace

TEST_CASE("matrix products are as fast as measured", "[workloads]") {
  const auto check = [](const char* node, const char* hardware, std::size_t rows, double median,
                        double ninth) {
    CAPTURE(hardware);
    const std::vector<double> sizes = residuals(Bench(node), hardware);
    REQUIRE(sizes.size() >= rows);
    CHECK(sizes[sizes.size() / 2] < median);
    CHECK(sizes[sizes.size() * 9 / 10] < ninth);
  };
  check("h100-8", "H100-80GB SXM", 96, 0.07, 0.17);
  check("a100-8", "A100-80GB SXM", 51, 0.06, 0.16);
}

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
  // 108 units: one wave of 108 tiles, and one tile more.
  const double full = bench.time(gemm("product", 256 * 108, 4096, 128));
  const double more = bench.time(gemm("product", 256 * 109, 4096, 128));
  CHECK(more > 1.05 * full);
}

TEST_CASE("longer rows and wider heads make better use of an attention kernel", "[workloads]") {
  const Bench bench("a100-8");
  const auto rate = [&](double tokens, double head) {
    return 1e15 / bench.time(attention_row(tokens, head));
  };
  CHECK(rate(4096, 128) == Approx(bench.gpu.attention.forward.value.value).epsilon(1e-4));
  CHECK(rate(512, 128) < 0.7 * rate(16384, 128));
  CHECK(rate(4096, 64) / rate(4096, 128) == Approx(0.87).margin(0.04));
  CHECK(rate(1 << 20, 256) < bench.gpu.peak.bf16.value.value);
}

TEST_CASE("the backward pass of a product is two products of its shape", "[workloads]") {
  const std::vector<KernelRow> backward = backward_of({gemm("product", 512, 1024, 2048)});
  REQUIRE(backward.size() == 2);
  CHECK(flops_of(backward) == 4.0 * 512 * 1024 * 2048);
  CHECK(backward[0].width == 1024);
  CHECK(backward[0].depth == 2048);
  CHECK(backward[1].rows == 1024);
  CHECK(backward[1].depth == 512);
}
