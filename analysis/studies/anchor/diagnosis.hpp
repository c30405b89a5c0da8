// A diagnosis asks what is wrong with a run: it replays the step with each fault that is known, and
// holds all of them against what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/studies/anchor/anchoring.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/foreign/logs/trainer_log.hpp"
#include "scenarios/read/faults.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {

// This holds what a profile says of a run beside what the stated step has: seconds of a step, or of
// all that was profiled where it does not say how many steps that is.
struct ProfiledRun {
  ProfiledTimes seen, stated;
  std::optional<double> idle{};  // s of a step
  double stated_idle = 0;
  bool steps_known = false;
};

// What logs say together, or what a replay would make of it.
struct RunSigns {
  std::optional<double> step_time;  // s
  std::optional<double> memory;     // bytes of a GPU, as `memory_kind` counts
  MemoryKind memory_kind = MemoryKind::unsaid;
  std::optional<double> busy;    // share of the time that a kernel runs
  std::optional<double> spread;  // ln of the quotient between long and short lines, of eight in ten
  std::optional<KernelTimes> kernels{};  // as seen_kernels() has them
  std::optional<ProfiledRun> profile{};
};

struct FaultQuestion {
  Catalogue data;
  std::string scenario;  // path or name
  std::span<const Setting> settings;
  std::uint32_t samples = 32;
  std::uint64_t seed = 1;
  std::size_t workers = usual_workers();
};

// The step with one fault at one level, or with two, at the constants' stated values.
struct FaultyStep {
  std::vector<std::size_t> faults{};  // among the kinds, in their order; none: nothing is wrong
  std::size_t levels = 1;             // that share what the faults are likely beforehand
  std::vector<Setting> settings{};    // of the faults, without those of the question
  double step_time = 0, busy = 0, spread = healthy_spread;
  MemoryFigures memory{};
  KernelTimes kernels{};
};

// A run with all faults that it could have. Those that change nothing are left out.
struct FaultyRuns {
  std::vector<FaultKind> kinds;
  Prediction stated;
  std::vector<FaultyStep> steps;  // the first one is healthy
  std::vector<double> draws;      // ln of a step with drawn constants over the stated one, centred
};
// Throws UserError where the scenario is none of a training step alone.
FaultyRuns replay_faults(const FaultQuestion& question);
// Adds steps with two faults at once. Only those are replayed that what each fault does alone makes
// the likeliest, as there are hundreds.
void replay_pairs(const FaultQuestion& question, const RunSigns& seen, std::string_view text,
                  FaultyRuns& runs);

// Returns the share of the time in which nvidia-smi sees a kernel: of computation or of a
// collective.
double busy_share(const Prediction& prediction);
// Returns what the logs say of such a run.
RunSigns signs_of(std::span<const TrainerLog> logs, const FaultyRuns& runs, const Catalogue& data);

struct Suspect {
  std::vector<const FaultKind*> kinds;  // one, or two at once; none: nothing is wrong
  double probability = 0;
  FaultyStep likeliest;               // of its levels
  std::vector<std::string> evidence;  // words that were found
};
// Returns all suspects, the likeliest first. `text` is what words of evidence are looked for in.
std::vector<Suspect> judge(const FaultyRuns& runs, const RunSigns& seen, std::string_view text);
// Returns the words of evidence in the text, of any fault.
std::vector<std::string> evidence_in(std::span<const FaultKind> kinds, std::string_view text);

}  // namespace stepsim
