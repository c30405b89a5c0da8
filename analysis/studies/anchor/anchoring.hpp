// Anchoring asks what a measured run says of the constants that its prediction rests on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/studies/anchor/posterior.hpp"
#include "analysis/studies/predict/kernel_times.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "scenarios/foreign/logs/trainer_log.hpp"
#include "scenarios/read/anchor.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {

// What one log counts, as a prediction's figures.
struct SeenRun {
  bool micro_batches = false;       // it counts those, and not optimizer steps
  double parts = 1;                 // of a step: so many of what it counts
  std::optional<double> step_time;  // s of an optimizer step
};
SeenRun seen_run(const TrainerLog& log, const Prediction& prediction);

// Returns a profile's kernels by what bounds them: seconds of a step, or shares of their sum where
// the profile does not say how many steps it covers; nothing where none of them computes.
std::optional<KernelTimes> seen_kernels(const KernelProfile& profile, const Catalogue& data);

// A GPU's memory at its most, as each tool counts it, in bytes.
struct MemoryFigures {
  double allocated = 0, reserved = 0, device = 0, needed = 0;

  double of(MemoryKind kind) const;
};
MemoryFigures memory_figures(const Scenario& scenario, Footprint memory);

struct AnchorQuestion {
  Catalogue data;
  std::string scenario;  // path or name
  std::span<const Setting> settings;
  std::span<const TrainerLog> logs;
  std::vector<std::string> names;  // of the logs: "train.log of 2026-11-28"
  std::string title;
  std::uint32_t samples = 64;
  std::uint64_t seed = 1;
  std::shared_ptr<const Anchor> before = {};  // of other runs, which this one is added to
  std::size_t workers = usual_workers();
};

struct AnchoredRun {
  Anchor anchor;
  std::optional<double> step_time, memory;  // that were measured: s, bytes
  Seconds stated, anchored;                 // steps as the catalogue has it, and after
  Range before, after;                      // eight of ten draws
  double stated_memory = 0;
};
// Throws UserError where the logs hold neither a time nor a memory, or the scenario is none of a
// training step alone.
AnchoredRun anchor_run(const AnchorQuestion& question);

}  // namespace stepsim
