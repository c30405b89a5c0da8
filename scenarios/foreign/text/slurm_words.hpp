// A queue is asked in these words: the options of srun, which are those of "#SBATCH" lines, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace stepsim {

// Options by their long names, "nodes": "4"; short ones as Slurm reads them: -N 4, -N4.
std::map<std::string, std::string> slurm_options(std::span<const std::string> words);

struct SlurmCounts {
  std::optional<std::int64_t> nodes{};
  std::optional<std::int64_t> gpus{}, tasks{};  // of each node
  std::string gpu{};                            // "a100" of --gres=gpu:a100:8
};
SlurmCounts slurm_counts(const std::map<std::string, std::string>& options);

}  // namespace stepsim
