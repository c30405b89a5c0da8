// A file of Accelerate: how many GPUs, and how they share the model.
#pragma once

#include <optional>
#include <string>

#include "scenarios/import/trainer_words.hpp"

namespace stepsim {

struct AccelerateFile {
  std::string file;
  GpusOfSource gpus{};
  std::string sharding{};  // "DEEPSPEED", "FSDP", "MULTI_GPU", "NO"
};

// Throws UserError about what is no file of Accelerate.
AccelerateFile read_accelerate(const std::string& file);

// What it says of the sharding; nothing where it leaves that to the arguments. `checkpointing`:
// FSDP computes layers again.
struct AcceleratePut {
  ShardingFacts sharding{};
  bool checkpointing = false;
};
AcceleratePut put_accelerate(MappedSource& source, const AccelerateFile& file);

}  // namespace stepsim
