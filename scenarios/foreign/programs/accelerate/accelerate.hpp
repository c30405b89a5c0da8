// A file of Accelerate says how many GPUs there are, and how they share the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/foreign/table/trainer_words.hpp"

namespace stepsim {

struct AccelerateFile {
  std::string file;
  std::string text{};  // of the file, with what the launcher's own options say in its place
  GpusOfSource gpus{};
  std::string sharding{};  // "DEEPSPEED", "FSDP", "MULTI_GPU", "NO"
};

// Throws UserError about what is no file of Accelerate.
AccelerateFile read_accelerate(const Catalogue& data, const std::string& file);
// The same of a file that a script writes.
AccelerateFile read_accelerate(const Catalogue& data, const Document& document,
                               const std::string& file);

// Reads options of `accelerate launch`, which say the same; nothing where they say nothing of the
// sharding.
std::optional<AccelerateFile> accelerate_of_options(const Launch& launch,
                                                    const std::string& script);

// Lays the same options over a file beside them, which they overrule.
void lay_options_over(AccelerateFile& accelerate, const Launch& launch);

// Puts what the file says of the sharding, and returns it; nothing where it leaves that to the
// arguments. `checkpointing`: FSDP computes layers again.
struct AcceleratePut {
  ShardingFacts sharding{};
  bool checkpointing = false;
  std::int64_t threads = 0;  // of each process; 0: the file does not say
};
AcceleratePut put_accelerate(MappedSource& source, const AccelerateFile& file);

}  // namespace stepsim
