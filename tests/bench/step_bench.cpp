// What a prediction costs from the scenario file to the trace file: load, build, replay, report,
// write; and what `memory` costs. `step_bench` prints all rows, each from a process of its own.
// `step_bench ROW` runs one row in this process, so that callgrind or perf see it alone.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "sim/process/worker.hpp"
#include "sim/run_file.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

constexpr std::string_view sharded_70b = R"(
name: Llama-3.3-70B SFT, FSDP, 128 x 8 H100
model: llama-3.3-70b
cluster: {node: h100-8, nodes: 128}
stack: fsdp2-eager
job: {method: sft, sequence: 4096, micro_batch: 1}
strategy: {zero: fsdp}
)";

struct Row {
  std::string_view name;
  std::string_view title;
  std::string_view scenario;  // of the catalogue; empty: the one above
  double limit;               // s
  bool memory = false;        // `memory`, not `run`
};
constexpr std::array rows{
    Row{"loop", "Qwen3-30B, ZeRO-3, expert by expert", "qwen3-30b-zero3-loop-noleaf-sub1e9", 0.5},
    Row{"loop-sub0", "the same, a sub-group per tensor", "qwen3-30b-zero3-loop-noleaf-sub0", 0.7},
    Row{"leaf", "the same, leaf modules", "qwen3-30b-zero3-loop-leaf-sub1e9", 0.3},
    Row{"grouped", "the same, experts grouped", "qwen3-30b-zero3-grouped-noleaf-sub1e9", 0.3},
    Row{"dense", "Llama-3.2-3B, ZeRO-3", "llama32-3b-sft-zero3", 0.15},
    Row{"fsdp-1024", "Llama-3.3-70B, FSDP, 1,024 ranks", "", 1.0},
    Row{"memory", "what loop-sub0 needs", "qwen3-30b-zero3-loop-noleaf-sub0", 0.1, true},
    Row{"remedies", "what would make a 32B fit", "sft-32b-trl-1x4gh200-oom", 0.1, true},
};

// Of the processor, so that a busy machine changes nothing.
double clock_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// The report is written, but to nowhere.
void run_quietly(int (*command)(const CommandLine&), const CommandLine& line) {
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO), nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  command(line);
  std::fflush(stdout);
  ::dup2(kept, STDOUT_FILENO);
  ::close(kept);
  ::close(nowhere);
}

std::string line(const Row& row) {
  const TemporaryFolder folder;
  std::string scenario(row.scenario);
  if (scenario.empty()) put_bytes(scenario = folder.file("scenario.yaml"), sharded_70b);
  const std::string trace = folder.file("run.h5");
  std::vector<std::string> words{scenario};
  if (!row.memory) words.insert(words.end(), {"--samples", "0", "--output", trace});
  const double begin = clock_seconds();
  run_quietly(row.memory ? memory_command : run_command, {source_data(), words});
  const double seconds = clock_seconds() - begin;
  const double mebibytes = peak_mebibytes();
  if (row.memory)
    return fmt::format("{:<12}{:<40}{:>10}{:>9.3f}{:>7.2f}{:>9}{:>8.0f}\n", row.name, row.title, "",
                       seconds, row.limit, "", mebibytes);
  const double operations = static_cast<double>(read_run(trace).graph.size());
  return fmt::format("{:<12}{:<40}{:>10.0f}{:>9.3f}{:>7.2f}{:>9.2f}{:>8.0f}\n", row.name, row.title,
                     operations, seconds, row.limit, 1e6 * seconds / operations, mebibytes);
}

int run(std::string_view only) {
  fmt::print("{:<12}{:<40}{:>10}{:>9}{:>7}{:>9}{:>8}\n", "row", "", "ops", "seconds", "limit",
             "us/op", "MiB");
  bool known = only.empty();
  std::fflush(stdout);  // or each worker prints it again
  for (const Row& row : rows) {
    if (only.empty())
      fmt::print("{}", in_worker([&] { return line(row); }));
    else if (row.name == only)
      fmt::print("{}", line(row));
    known = known || row.name == only;
    std::fflush(stdout);
  }
  if (!known) fmt::print("no row \"{}\"\n", only);
  return known ? 0 : 2;
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  return stepsim::run(argc > 1 ? argv[1] : "");
}
