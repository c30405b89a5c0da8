// random_scenarios --show SEED: the scenario that a message names by its seed.
// random_scenarios COUNT [SEED [FOLDER EVERY]]: draws scenarios until so many are legal, and holds
// each against the laws; of them each EVERY-th is kept in FOLDER. Exit code 1: a law is broken.
// What breaks it is printed with as few keys as still do.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/process/worker.hpp"
#include "tests/laws/random/drawn_scenario.hpp"
#include "tests/laws/random/scenario_laws.hpp"
#include "tests/support/processor_time.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

const Catalogue& data = source_data();
constexpr rlim_t most_seconds = 60;  // of a processor, for one scenario and all laws
[[maybe_unused]] constexpr rlim_t most_bytes = rlim_t{3} << 30;
constexpr int most_mended = 12;         // refusals of one draw
constexpr std::size_t most_shrunk = 3;  // of one law

// The scenario is a legal one, or the last that was refused.
struct Drawn {
  std::vector<Setting> settings;
  LawVerdict verdict;
  std::uint64_t refusals = 0;

  static auto fields(auto& self) { return std::tie(self.settings, self.verdict, self.refusals); }
};

// Limits processor time and memory: what never ends is ended, and is a worker's death.
void limit_resources() {
  const auto limit = [](auto resource, rlim_t most) {
    rlimit limits{};
    getrlimit(resource, &limits);
    limits.rlim_cur = std::min(limits.rlim_max, most);
    setrlimit(resource, &limits);
  };
  limit(RLIMIT_CPU, static_cast<rlim_t>(processor_seconds()) + most_seconds);
#ifndef STEPSIM_SANITIZED  // which takes very many addresses at once
  limit(RLIMIT_AS, most_bytes);
#endif
}

// Draws until a scenario is legal. `look` examines it in this process, or in a worker, which may
// die.
template <class Look>
Drawn draw_one(std::uint64_t seed, const Look& look) {
  Dice dice(seed);
  Drawn drawn{.settings = draw_settings(data, dice), .verdict = {}};
  for (;; ++drawn.refusals) {
    drawn.verdict = look(drawn.settings, seed);
    if (drawn.verdict.refused.empty() || drawn.refusals == most_mended) return drawn;
    if (!mend(drawn.settings, drawn.verdict.refused, dice)) return drawn;
  }
}

LawVerdict look_here(const std::vector<Setting>& settings, std::uint64_t seed) {
  limit_resources();
  return examine(data, settings, seed);
}

LawVerdict look_apart(const std::vector<Setting>& settings, std::uint64_t seed) {
  const Tasks<LawVerdict> task{[&] { return look_here(settings, seed); }};
  const WorkerOutcome<LawVerdict> outcome = outcomes_in_workers(task, 1).front();
  return outcome.answer ? *outcome.answer
                        : LawVerdict{.law = "a scenario ends", .detail = outcome.error};
}

struct Tally {
  std::uint64_t draws = 0, legal = 0, refusals = 0, broken = 0;
  std::map<std::string, std::size_t> laws_broken;
  std::map<std::string, std::map<std::string, std::size_t>> seen;
};

// Leaves keys out, and replaces what has to stand by what is usual, while the law stays broken.
std::vector<Setting> shrunk(std::vector<Setting> settings, const std::string& law,
                            std::uint64_t seed) {
  constexpr double patience = 60;  // s of a processor
  const double begun = processor_seconds();
  const auto still = [&](const std::vector<Setting>& fewer) {
    return processor_seconds() < begun + patience && look_apart(fewer, seed).law == law;
  };
  const auto leave_out = [&](const auto& which) {
    std::vector<Setting> fewer = settings;
    std::erase_if(fewer, which);
    if (fewer.size() < settings.size() && still(fewer)) settings = fewer;
  };
  for (const Setting& setting : std::vector(settings)) {
    if (has_to_stand(setting.first)) continue;
    leave_out([&](const Setting& each) { return each.first == setting.first; });
  }
  for (const auto& [key, value] :
       {Setting{"model", "llama-3.2-1b"}, Setting{"cluster.node", "h100-8"},
        Setting{"stack", "fsdp2-eager"}, Setting{"job.sequence", "1024"}}) {
    std::vector<Setting> usual = settings;
    for (Setting& each : usual)
      if (each.first == key) each.second = value;
    if (still(usual)) settings = usual;
  }
  return settings;
}

void report(const Drawn& drawn, std::uint64_t seed, Tally& tally) {
  const LawVerdict& verdict = drawn.verdict;
  ++tally.broken;
  fmt::print("\nseed {} breaks: {}: {}\n", seed, verdict.law, verdict.detail);
  if (++tally.laws_broken[verdict.law] <= most_shrunk)
    fmt::print("{}", yaml_of(shrunk(drawn.settings, verdict.law, seed)));
  std::fflush(stdout);
}

// Prints the scenario that a seed stands for.
int show(std::uint64_t seed) {
  const Drawn drawn = draw_one(seed, look_apart);
  fmt::print("{}{}: {}\n", yaml_of(drawn.settings), drawn.verdict.law, drawn.verdict.detail);
  for (const Problem& problem : drawn.verdict.refused) fmt::print("{}\n", to_text(problem));
  return drawn.verdict.law.empty() ? 0 : 1;
}

struct Question {
  std::uint64_t count = 200, seed = 1;
  std::string folder;
  std::uint64_t every = 1;
};

void take(const Question& question, std::uint64_t seed, const WorkerOutcome<Drawn>& outcome,
          Tally& tally) {
  ++tally.draws;
  const Drawn drawn = outcome.answer ? *outcome.answer : draw_one(seed, look_apart);
  tally.refusals += drawn.refusals;
  if (!drawn.verdict.law.empty()) return report(drawn, seed, tally);
  if (!drawn.verdict.refused.empty()) return;
  for (const auto& [kind, which] : drawn.verdict.seen) ++tally.seen[kind][which];
  if (!question.folder.empty() && tally.legal % question.every == 0)
    std::ofstream(fmt::format("{}/{}.yaml", question.folder, seed)) << yaml_of(drawn.settings);
  ++tally.legal;
}

int draw_all(const Question& question) {
  constexpr std::size_t at_once = 100;
  Tally tally;
  std::uint64_t first = question.seed << 32;
  while (tally.legal + tally.broken < question.count && tally.draws < 2 * question.count) {
    const std::size_t left = static_cast<std::size_t>(question.count - tally.legal - tally.broken);
    outcomes_in_workers(
        std::min(left, at_once), 1, [&](std::size_t i) { return draw_one(first + i, look_here); },
        [&](std::size_t i, const WorkerOutcome<Drawn>& outcome) {
          take(question, first + i, outcome, tally);
        });
    first += at_once;
  }
  fmt::print("{} of {} draws were legal, after {} refusals; {} broke a law\n", tally.legal,
             tally.draws, tally.refusals, tally.broken);
  for (const auto& [kind, times] : tally.seen) {
    const auto least =
        std::ranges::min_element(times, {}, [](const auto& each) { return each.second; });
    fmt::print("{}: {}, the rarest {} times ({})\n", kind, times.size(), least->second,
               least->first);
  }
  std::vector<std::string> never = keys_that_are_drawn();
  std::erase_if(never, [&](const std::string& key) { return tally.seen["key"].contains(key); });
  fmt::print("in no legal one: {}\n", fmt::join(never, ", "));
  for (const auto& [law, times] : tally.laws_broken) fmt::print("{} times: {}\n", times, law);
  return tally.broken > 0 || tally.legal < question.count ? 1 : 0;
}

}  // namespace
}  // namespace stepsim

int main(int argc, char** argv) {
  stepsim::Question question;
  if (argc > 2 && std::string_view(argv[1]) == "--show")
    return stepsim::show(std::strtoull(argv[2], nullptr, 10));
  if (argc > 1) question.count = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2) question.seed = std::strtoull(argv[2], nullptr, 10);
  if (argc > 4) question.folder = argv[3], question.every = std::strtoull(argv[4], nullptr, 10);
  return stepsim::draw_all(question);
}
