// An interval says how sure a prediction is, given what is known about the constants that it rests
// on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/studies/predict/draws.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "sim/ideal.hpp"
#include "sim/process/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

struct Interval {
  Range step_time;            // s
  Range throughput;           // tokens per second and GPU
  Range memory;               // bytes of a GPU, with slack and libraries
  Range wall;                 // s of the whole job; 0: how long it is is not given
  Range energy, job_energy;   // J of a step and of the whole job; 0: not known
  std::uint32_t samples = 0;  // draws that could run
  std::vector<double> step_times, throughputs;  // of each of them
  std::vector<Mover> movers;                    // of the step time in seconds, the strongest first
  std::vector<Mover> wall_movers;  // of the whole job at the stated step time, likewise
};

struct IntervalQuestion {
  Catalogue data;
  std::string scenario;  // path or name
  std::span<const Setting> settings;
  std::uint32_t samples = 8;
  std::uint64_t seed = 1;
  CauseSet free = {};      // causes that cost nothing
  std::size_t movers = 0;  // at most so many; each that is tried takes a replay or two
  std::size_t workers = usual_workers();
  std::optional<StepFigures> stated{};  // at the stated constants, where they are known
};

// Returns the figures of a prediction without a kept run, whose micro-batches are all replayed.
StepFigures stated_figures(const Prediction& prediction);

// Draws every constant from its range, all at once, once per sample; each sample is built and
// replayed in a worker of its own. The stated constants are replayed, too, and lie inside.
Interval interval_of(const IntervalQuestion& question);

}  // namespace stepsim
