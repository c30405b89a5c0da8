// How many points a sweep evaluates in a second, and where a point's time goes. Points are steps of
// dense models on one folded node of eight GPUs. `sweep_bench` prints one row per model, and what
// one point costs of processor time, part by part; `sweep_bench POINTS` sets how many there are.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include "analysis/studies/sweep/sweep.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/engine/own/replay.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/processor_time.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"
#include "workloads/step/step.hpp"

namespace stepsim {
namespace {

constexpr double wanted_rate = 60;  // points a second on two cores
constexpr std::array models{"llama-3.2-3b", "llama-3.1-8b", "phi-4", "qwen3-32b", "llama-3.3-70b"};
constexpr std::string_view form = R"(
name: sweep
model: {}
cluster: {{node: h100-8, nodes: 1}}
stack: deepspeed-hf
job: {{method: sft, sequence: 4096, micro_batch: 1}}
strategy: {{zero: 3}}
)";

SweepQuestion question_of(const std::string& scenario, std::string_view points,
                          const std::string& journal) {
  SweepQuestion question{.data = source_data(),
                         .plan = {},
                         .shard = {},
                         .journal = journal,
                         .workers = usual_workers(),
                         .progress = {}};
  question.plan.scenario = scenario;
  question.plan.axes = {parse_axis("--vary", fmt::format("job.micro_batch=1:{}", points))};
  return question;
}

// Milliseconds of one point, apart; what a worker costs is the rest.
struct Parts {
  double load = 0, build = 0, replay = 0, read_out = 0, write = 0;
};

Parts parts_of(const std::string& scenario, const std::string& folder) {
  Parts parts;
  load_scenario(source_data(), scenario);  // as in a sweep: the catalogue is warm
  constexpr int times = 20;
  Scenario loaded;
  parts.load = processor_seconds_of([&] {
                 for (int i = 0; i < times; ++i) loaded = load_scenario(source_data(), scenario);
               }) /
               times;
  const StepInput input{loaded.cluster, loaded.model, loaded.stack, loaded.strategy, loaded.job};
  parts.build = processor_seconds_of([&] {
                  for (int i = 0; i < times; ++i) build_step(input, Folding::automatic);
                }) /
                times;
  const auto replay_alone = [&] {
    const StepProgram program = build_step(input, Folding::automatic);
    return processor_seconds_of([&] { replay(program.traffic.folded.platform, program.graph); });
  };
  parts.replay = in_worker(replay_alone);
  Outcome outcome;
  const double predicted = processor_seconds_of([&] {
    outcome = in_worker([&] { return outcome_of(loaded, predict(loaded, Kept::figures)); });
  });
  const double empty = processor_seconds_of([] { in_worker([] { return std::string(); }); });
  parts.read_out = std::max(0.0, predicted - empty - parts.build - parts.replay);
  SweepTable table{"", "", "", {"job.micro_batch"}, 1000, {}};
  for (std::size_t i = 0; i < table.points; ++i) table.rows.push_back({i, {"1"}, outcome});
  parts.write = processor_seconds_of([&] {
                  csv_of(table);
                  write_sweep(folder + "/table.h5", table);
                }) /
                static_cast<double>(table.points);
  return parts;
}

int run(std::string_view points) {
  const TemporaryFolder folder;
  const double count = std::atof(std::string(points).c_str());
  fmt::print("{:<14}{:>7}{:>10}{:>10}{:>8}{:>8}{:>8}{:>9}{:>8}{:>9}\n", "", "points", "points/s",
             "ms/point", "load", "build", "replay", "read out", "write", "worker");
  bool fast_enough = true;
  for (const char* model : models) {
    const std::string scenario = folder.file(fmt::format("{}.yaml", model));
    put_bytes(scenario, fmt::format(form, model));
    const SweepQuestion question = question_of(scenario, points, folder.file("journal"));
    const auto begin = std::chrono::steady_clock::now();
    double processor = processor_seconds_of([&] { run_sweep(question); });
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    put_bytes(folder.file("journal"), "");
    const Parts parts = parts_of(scenario, folder.path());
    const double rate = count / wall.count();
    processor /= count;
    const double worker =
        processor - parts.load - parts.build - parts.replay - parts.read_out - parts.write;
    fmt::print("{:<14}{:>7}{:>10.0f}{:>10.1f}{:>8.1f}{:>8.1f}{:>8.1f}{:>9.1f}{:>8.2f}{:>9.1f}\n",
               model, points, rate, 1e3 * processor, 1e3 * parts.load, 1e3 * parts.build,
               1e3 * parts.replay, 1e3 * parts.read_out, 1e3 * parts.write, 1e3 * worker);
    std::fflush(stdout);
    fast_enough = fast_enough && 2 / processor >= wanted_rate;
  }
  fmt::print(
      "ms are processor time; two idle cores give 2000 / (ms/point) points a second: {} {}\n",
      fast_enough ? "at least" : "LESS THAN", wanted_rate);
  return fast_enough ? 0 : 1;
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  return stepsim::run(argc > 1 ? argv[1] : "100");
}
