// How the cost of a question grows with its size: processor time at five sizes and more, and the
// exponent that fits them. `growth_bench` prints all rows, `growth_bench ROW` one of them.
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include "analysis/studies/predict/bandwidth.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/processor_time.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

constexpr std::string_view sharded = R"(
name: growth
model: llama-3.3-70b
cluster: {node: h100-8}
stack: fsdp2-eager
job: {sequence: 4096, micro_batch: 1}
strategy: {zero: fsdp}
)";
constexpr std::string_view staged = R"(
name: growth
model: llama-3.3-70b
cluster: {node: h100-8, nodes: 8}
stack: megatron
job: {sequence: 8192, micro_batch: 1}
strategy:
  zero: 1
  gradient_dtype: fp32
  checkpointing: selective
  tensor_parallel: {size: 8}
  pipeline_parallel: {size: 8}
  distributed_optimizer: {}
)";

void predict_one(std::string_view text, const std::vector<Setting>& settings, Folding folding) {
  const TemporaryFolder folder;
  const std::string file = folder.file("scenario.yaml");
  put_bytes(file, text);
  predict(load_scenario(source_data(), file, settings), Kept::figures, {.folding = folding});
}

void exchange(std::uint32_t ranks) {
  const Cluster cluster =
      load_cluster(source_data(), {.name = "superpod-h100", .nodes = ranks / 8});
  measure_bandwidth(cluster, {.operation = "all_to_all", .sizes = {1e9}});
}

std::string nodes(int gpus) {
  return std::to_string(gpus / 8);
}

struct Row {
  std::string_view name, title;
  std::vector<int> sizes;
  double limit;  // of the exponent
  void (*ask)(int size);
};
const std::array rows{
    Row{"slow",
        "GPUs, one of them slow",
        {64, 128, 256, 512, 1024},
        1.1,
        [](int gpus) {
          predict_one(
              sharded,
              {{"cluster.nodes", nodes(gpus)}, {"cluster.slow_gpus", "[{rank: 3, speed: 0.8}]"}},
              Folding::automatic);
        }},
    Row{"unlike",
        "GPUs, no two alike",
        {8, 16, 32, 64, 128},
        1.1,
        [](int gpus) {
          predict_one(sharded, {{"cluster.nodes", nodes(gpus)}, {"cluster.vary", "{seed: 1}"}},
                      Folding::automatic);
        }},
    Row{"unfolded",
        "GPUs, each replayed",
        {8, 16, 32, 64, 128},
        1.1,
        [](int gpus) {
          predict_one(sharded, {{"cluster.nodes", nodes(gpus)}}, Folding::off);
        }},
    Row{"gpus",
        "GPUs",
        {1024, 2048, 4096, 8192, 16384},
        1.1,
        [](int gpus) {
          predict_one(sharded, {{"cluster.nodes", nodes(gpus)}}, Folding::automatic);
        }},
    Row{"exchange",
        "ranks that all send to all",
        {1024, 2048, 4096, 8192, 16384},
        1.1,
        [](int ranks) { exchange(static_cast<std::uint32_t>(ranks)); }},
    Row{"batches",
        "micro-batches",
        {64, 128, 256, 512, 1024},
        1.0,
        [](int batches) {
          predict_one(sharded, {{"job.gradient_accumulation", std::to_string(batches)}},
                      Folding::automatic);
        }},
    Row{"pipeline",
        "micro-batches through 8 stages",
        {64, 128, 256, 512, 1024},
        1.0,
        [](int batches) {
          predict_one(staged, {{"job.gradient_accumulation", std::to_string(batches)}},
                      Folding::automatic);
        }},
};

struct Measured {
  double seconds = 0, mebibytes = 0;
};

// Of the processor, so that a busy machine changes nothing; in a process of its own.
Measured measure(const Row& row, int size) {
  return in_worker([&] {
    const double seconds = processor_seconds_of([&] { row.ask(size); });
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return Measured{seconds, static_cast<double>(usage.ru_maxrss) / 1024};
  });
}

// The slope of logarithms.
double exponent(const std::vector<int>& sizes, const std::vector<Measured>& measured) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double size = std::log(sizes[i]), seconds = std::log(measured[i].seconds);
    x += size;
    y += seconds;
    xx += size * size;
    xy += size * seconds;
  }
  const auto n = static_cast<double>(sizes.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

int run(std::string_view only) {
  bool good = true;
  for (const Row& row : rows) {
    if (!only.empty() && row.name != only) continue;
    fmt::print("{:<10}{:<32}", row.name, row.title);
    std::vector<Measured> measured;
    for (const int size : row.sizes) {
      std::fflush(stdout);  // or each worker prints it again
      measured.push_back(measure(row, size));
      fmt::print("  {}: {:.2f} s, {:.0f} MiB;", size, measured.back().seconds,
                 measured.back().mebibytes);
    }
    const double found = exponent(row.sizes, measured);
    good = good && found <= row.limit;
    fmt::print("  exponent {:.2f}, {} {}\n", found, found <= row.limit ? "at most" : "MORE THAN",
               row.limit);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  return stepsim::run(argc > 1 ? argv[1] : "");
}
