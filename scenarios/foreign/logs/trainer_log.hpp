// A running or finished training says this of itself: a progress bar, `trainer_state.json` of
// Transformers, or the log of a trainer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenarios/foreign/logs/kernel_profile.hpp"
#include "scenarios/keys/observation.hpp"

namespace stepsim {

struct TrainerLog {
  std::string kind;               // "a progress bar", "trainer_state.json", "Megatron's log", ...
  double done = 0;                // steps
  std::optional<double> total{};  // that are to be made
  std::optional<double> seconds_per_step{};  // mean over all of them, or over the lines of the log
  std::optional<double> recent{};            // of the last ones
  std::optional<Range> spread{};             // of single lines, eight of ten
  std::optional<double> tokens_per_second_per_gpu{};
  std::optional<double> memory{};  // bytes of a GPU
  MemoryKind memory_kind = MemoryKind::unsaid;
  std::optional<double> busy{};  // share of the time that nvidia-smi saw a kernel
  std::optional<KernelProfile> profile{};
};

// Reads a whole file, or a single line that somebody copied. Throws UserError with `name` when
// nothing is found in it.
TrainerLog read_trainer_log(std::string_view text, const std::string& name);
// Returns the text of a log, "-" being standard input; throws UserError when it cannot be read.
std::string read_log_text(const std::string& path);
// Returns what a trace of PyTorch's profiler says, which may be larger than a text; nothing where
// the file is none.
std::optional<TrainerLog> load_trace(const std::string& path);
// Reads a log from a file; throws UserError when it cannot be read.
TrainerLog load_trainer_log(const std::string& path);

// A phase says where in its course a run is: "not begun", "first steps", "in full swing",
// "finished".
enum class RunPhase : std::uint8_t { not_begun, first_steps, full_swing, finished };
std::string_view to_text(RunPhase phase);
RunPhase phase_of(const TrainerLog& log);

}  // namespace stepsim
