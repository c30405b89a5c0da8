// Faults that were planted are found.
#include "analysis/studies/anchor/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/load/load_scenario.hpp"
#include "sim/base/lists.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

// Normal to the third moment.
double normal(Dice& dice) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += dice.roll(1u << 20) * 0x1p-20;
  return sum;
}

struct Found {
  double faulty = 0, first = 0, three = 0, healthy = 0, quiet = 0;
};

struct PlantedRun {
  std::size_t fault = 0;  // its step
  std::uint32_t sample = 0;
};

std::vector<PlantedRun> planted_runs(const FaultyRuns& runs, std::uint32_t count, Dice& dice) {
  std::vector<PlantedRun> planted;
  for (std::uint32_t i = 0; i < count; ++i) {
    PlantedRun run{0, i};
    if (i % 2 == 1) run.fault = 1 + dice.roll(static_cast<std::uint32_t>(runs.steps.size()) - 1);
    planted.push_back(run);
  }
  return planted;
}

// Replays under constants that the diagnosis does not know, and writes figures with noise as tools
// print them.
std::vector<std::vector<TrainerLog>> logs_of(const std::string& file, const FaultyRuns& runs,
                                             const std::vector<PlantedRun>& planted, Dice& dice) {
  struct Played {
    double step = 0, busy = 0;
    MemoryFigures memory;
  };
  std::vector<Played> played(planted.size());
  in_workers(
      planted.size(), usual_workers(),
      [&](std::size_t i) -> Played {
        const Draw draw{.seed = 77,
                        .sample = planted[i].sample,
                        .of = static_cast<std::uint32_t>(planted.size())};
        const Scenario scenario =
            load_scenario(source_data(), file, runs.steps[planted[i].fault].settings, draw);
        const Prediction p = predict(scenario, Kept::figures);
        return {p.step_time.value, busy_share(p), memory_figures(scenario, p.memory)};
      },
      [&](std::size_t i, const Played& each) { played[i] = each; });
  std::vector<std::vector<TrainerLog>> all;
  for (std::size_t i = 0; i < planted.size(); ++i) {
    const double step = played[i].step * std::exp(0.03 * normal(dice));
    const double half = runs.steps[planted[i].fault].spread * std::exp(0.3 * normal(dice)) / 2;
    const double mebibytes = played[i].memory.device * std::exp(0.03 * normal(dice)) / 0x1p20;
    const double busy = std::clamp(played[i].busy + 0.03 * normal(dice), 0.0, 1.0);
    std::string lines;
    for (int line = 0; line < 40; ++line)
      lines += fmt::format(" iteration {}/ 100 | elapsed time per iteration (ms): {:.3f} |\n",
                           line + 1, 1e3 * step * std::exp(half * (line % 5 - 2) / 2));
    all.push_back(
        {read_trainer_log(lines, "train.log"),
         read_trainer_log(fmt::format("memory.used [MiB], utilization.gpu [%]\n{:.0f} MiB, {:.0f} "
                                      "%\n",
                                      mebibytes, 100 * busy),
                          "smi.csv")});
  }
  return all;
}

void look_for_faults(const std::string& name, std::uint32_t count, Dice& dice, Found& found) {
  const std::string file = STEPSIM_SOURCE_DATA "/scenarios/" + name + ".yaml";
  const FaultyRuns runs =
      replay_faults({.data = source_data(), .scenario = file, .settings = {}, .samples = 16});
  REQUIRE(runs.steps.size() > 4);
  const std::vector<PlantedRun> planted = planted_runs(runs, count, dice);
  const auto logs = logs_of(file, runs, planted, dice);
  for (std::size_t i = 0; i < planted.size(); ++i) {
    const std::vector<Suspect> suspects = judge(runs, signs_of(logs[i], runs, source_data()), "");
    const std::size_t fault = runs.steps[planted[i].fault].fault;
    const FaultKind* kind = fault < runs.kinds.size() ? &runs.kinds[fault] : nullptr;
    const auto place = std::ranges::find(suspects, kind, &Suspect::kind) - suspects.begin();
    (kind == nullptr ? found.healthy : found.faulty) += 1;
    if (kind == nullptr)
      found.quiet += place == 0 ? 1 : 0;
    else
      found.first += place == 0 ? 1 : 0, found.three += place < 3 ? 1 : 0;
    UNSCOPED_INFO(
        name << ": " << (kind == nullptr ? "healthy" : kind->name) << " at place " << place + 1
             << ", first is "
             << (suspects.front().kind == nullptr ? "healthy" : suspects.front().kind->name));
  }
}

void require_found(std::uint32_t runs_of_each) {
  Dice dice(5);
  Found found;
  for (const char* name : {"seeds/mpt7b-zero3-offload", "seeds/llama32-3b-sft-zero3",
                           "measured/own/qwen3-0.6b-8x2048-checkpoints"})
    look_for_faults(name, runs_of_each, dice, found);
  UNSCOPED_INFO("first " << found.first << ", among three " << found.three << " of " << found.faulty
                         << "; healthy " << found.quiet << " of " << found.healthy);
  CHECK(found.first >= 0.7 * found.faulty);
  CHECK(found.three >= 0.9 * found.faulty);
  CHECK(found.quiet >= 0.88 * found.healthy);
}

}  // namespace

TEST_CASE("faults that were planted are found, and healthy runs are left alone", "[anchor]") {
  require_found(100);
}

TEST_CASE("words of a log speak for their fault", "[anchor]") {
  const std::string file = STEPSIM_SOURCE_DATA "/scenarios/seeds/llama32-3b-sft-zero3.yaml";
  const FaultyRuns runs =
      replay_faults({.data = source_data(), .scenario = file, .settings = {}, .samples = 8});
  RunSigns seen;
  seen.step_time = 1.25 * runs.stated.step_time.value;
  const auto chance = [&](std::string_view text) {
    const auto suspects = judge(runs, seen, text);
    return std::ranges::find_if(suspects,
                                [](const Suspect& each) {
                                  return each.kind != nullptr && each.kind->name == "slow-gpus";
                                })
        ->probability;
  };
  CHECK(chance("throttle: SW Power Cap active") > 3 * chance(""));
}

TEST_CASE("one GPU has no fault of many", "[anchor]") {
  const std::string file = STEPSIM_SOURCE_DATA "/scenarios/measured/own/qwen3-0.6b-1x512.yaml";
  const FaultyRuns runs =
      replay_faults({.data = source_data(), .scenario = file, .settings = {}, .samples = 8});
  for (const FaultyStep& step : runs.steps)
    if (step.fault < runs.kinds.size()) {
      CHECK(runs.kinds[step.fault].gpus == 1);
      CHECK(runs.kinds[step.fault].nodes == 1);
    }
}

}  // namespace stepsim
