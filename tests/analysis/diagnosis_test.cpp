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

// Every second one is healthy.
std::vector<FaultyStep> planted_runs(const FaultyRuns& runs, std::uint32_t count, Dice& dice) {
  std::vector<FaultyStep> planted;
  const auto steps = static_cast<std::uint32_t>(runs.steps.size());
  for (std::uint32_t i = 0; i < count; ++i)
    planted.push_back(runs.steps[i % 2 == 1 ? 1 + dice.roll(steps - 1) : 0]);
  return planted;
}

// Two faults at once, of which neither sets what the other does.
std::vector<FaultyStep> planted_pairs(const FaultyRuns& runs, std::uint32_t count, Dice& dice) {
  std::vector<FaultyStep> planted;
  const auto steps = static_cast<std::uint32_t>(runs.steps.size());
  while (planted.size() < count) {
    FaultyStep step = runs.steps[1 + dice.roll(steps - 1)];
    const FaultyStep& other = runs.steps[1 + dice.roll(steps - 1)];
    if (step.faults >= other.faults) continue;
    if (std::ranges::any_of(other.settings, [&](const Setting& own) {
          return holds(step.settings, own.first, &Setting::first);
        }))
      continue;
    append(step.faults, other.faults);
    append(step.settings, other.settings);
    step.spread = std::max(step.spread, other.spread);
    planted.push_back(step);
  }
  return planted;
}

// Replays under constants that the diagnosis does not know, and writes figures with noise as tools
// print them.
std::vector<std::vector<TrainerLog>> logs_of(const std::string& file,
                                             const std::vector<FaultyStep>& planted, Dice& dice) {
  struct Played {
    double step = 0, busy = 0;
    MemoryFigures memory;
  };
  std::vector<Played> played(planted.size());
  in_workers(
      planted.size(), usual_workers(),
      [&](std::size_t i) -> Played {
        const Draw draw{.seed = 77,
                        .sample = static_cast<std::uint32_t>(i),
                        .of = static_cast<std::uint32_t>(planted.size())};
        const Scenario scenario = load_scenario(source_data(), file, planted[i].settings, draw);
        const Prediction p = predict(scenario, Kept::figures);
        return {p.step_time.value, busy_share(p), memory_figures(scenario, p.memory)};
      },
      [&](std::size_t i, const Played& each) { played[i] = each; });
  std::vector<std::vector<TrainerLog>> all;
  for (std::size_t i = 0; i < planted.size(); ++i) {
    const double step = played[i].step * std::exp(0.03 * normal(dice));
    const double half = planted[i].spread * std::exp(0.3 * normal(dice)) / 2;
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

std::vector<const FaultKind*> kinds_of(const FaultyRuns& runs, const FaultyStep& step) {
  return mapped(step.faults, [&](std::size_t fault) { return &runs.kinds[fault]; });
}

std::string names_of(const std::vector<const FaultKind*>& kinds) {
  std::string names;
  for (const FaultKind* kind : kinds) names += (names.empty() ? "" : " + ") + kind->name;
  return names;
}
std::string names_of_suspect(const Suspect& suspect) {
  return names_of(suspect.kinds);
}

void look_for_faults(const std::string& name, std::uint32_t count, Dice& dice, Found& found) {
  const std::string file = STEPSIM_SOURCE_DATA "/scenarios/" + name + ".yaml";
  const FaultyRuns runs =
      replay_faults({.data = source_data(), .scenario = file, .settings = {}, .samples = 16});
  REQUIRE(runs.steps.size() > 4);
  const std::vector<FaultyStep> planted = planted_runs(runs, count, dice);
  const auto logs = logs_of(file, planted, dice);
  for (std::size_t i = 0; i < planted.size(); ++i) {
    const std::vector<Suspect> suspects = judge(runs, signs_of(logs[i], runs, source_data()), "");
    const std::string fault = names_of(kinds_of(runs, planted[i]));
    const auto place = std::ranges::find(suspects, fault, names_of_suspect) - suspects.begin();
    (fault.empty() ? found.healthy : found.faulty) += 1;
    if (fault.empty())
      found.quiet += place == 0 ? 1 : 0;
    else
      found.first += place == 0 ? 1 : 0, found.three += place < 3 ? 1 : 0;
    UNSCOPED_INFO(name << ": \"" << fault << "\" at place " << place + 1 << ", first is \""
                       << names_of_suspect(suspects.front()) << '"');
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

// A run with one fault or none is not taken for one with two; of two, one is named at once, and
// mostly both among the first three.
TEST_CASE("two faults at once are found", "[anchor]") {
  const std::string file = STEPSIM_SOURCE_DATA "/scenarios/seeds/llama32-3b-sft-zero3.yaml";
  const FaultQuestion question{
      .data = source_data(), .scenario = file, .settings = {}, .samples = 16};
  const FaultyRuns alone = replay_faults(question);
  Dice dice(7);
  constexpr std::uint32_t each = 24;
  std::vector<FaultyStep> planted = planted_pairs(alone, each, dice);
  append(planted, planted_runs(alone, each, dice));
  const auto logs = logs_of(file, planted, dice);
  double one = 0, both = 0, too_many = 0;
  for (std::size_t i = 0; i < planted.size(); ++i) {
    FaultyRuns runs = alone;
    const RunSigns seen = signs_of(logs[i], runs, source_data());
    replay_pairs(question, seen, "", runs);
    const std::vector<Suspect> suspects = judge(runs, seen, "");
    const std::string fault = names_of(kinds_of(runs, planted[i]));
    const std::string found = names_of_suspect(suspects.front());
    UNSCOPED_INFO('"' << fault << "\", first is \"" << found << '"');
    if (i >= each) {
      too_many += suspects.front().kinds.size() > 1 ? 1 : 0;
      continue;
    }
    std::vector<const FaultKind*> three;
    for (std::size_t place = 0; place < 3; ++place) append(three, suspects[place].kinds);
    std::size_t named = 0, at_once = 0;
    for (const FaultKind* kind : kinds_of(runs, planted[i])) {
      named += holds(three, kind) ? 1 : 0;
      at_once += holds(suspects.front().kinds, kind) ? 1 : 0;
    }
    one += at_once > 0 ? 1 : 0;
    both += named == 2 ? 1 : 0;
  }
  UNSCOPED_INFO("one at once " << one << ", both among three " << both << ", two in place of one "
                               << too_many << " of " << each);
  CHECK(one >= 0.9 * each);
  CHECK(both >= 0.6 * each);
  CHECK(too_many <= 0.1 * each);
}

TEST_CASE("words of a log speak for their fault", "[anchor]") {
  const std::string file = STEPSIM_SOURCE_DATA "/scenarios/seeds/llama32-3b-sft-zero3.yaml";
  const FaultyRuns runs =
      replay_faults({.data = source_data(), .scenario = file, .settings = {}, .samples = 8});
  RunSigns seen;
  seen.step_time = 1.25 * runs.stated.step_time.value;
  const auto chance = [&](std::string_view text) {
    const auto suspects = judge(runs, seen, text);
    return std::ranges::find(suspects, "slow-gpus", names_of_suspect)->probability;
  };
  CHECK(chance("throttle: SW Power Cap active") > 3 * chance(""));
}

TEST_CASE("one GPU has no fault of many", "[anchor]") {
  const std::string file = STEPSIM_SOURCE_DATA "/scenarios/measured/own/qwen3-0.6b-1x512.yaml";
  const FaultyRuns runs =
      replay_faults({.data = source_data(), .scenario = file, .settings = {}, .samples = 8});
  for (const FaultyStep& step : runs.steps)
    for (const FaultKind* kind : kinds_of(runs, step)) {
      CHECK(kind->gpus == 1);
      CHECK(kind->nodes == 1);
    }
}

}  // namespace stepsim
