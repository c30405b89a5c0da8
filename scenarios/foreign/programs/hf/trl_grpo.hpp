// GRPO as TRL's trainer runs it, which Axolotl and TRL's own scripts start with the same settings
// under other names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scenarios/foreign/table/assumed.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"

namespace stepsim {

// These words say where the settings stand: {"trl.", "vllm."} in an Axolotl file.
struct TrlGrpoWords {
  std::string trainer{};               // before "num_generations"
  std::string server = "vllm_";        // before "tensor_parallel_size" of a server of its own
  std::string_view mode = "colocate";  // unless it is told otherwise
  std::int64_t response = 512;         // the same
  std::int64_t samples = 8;            // the same
  bool leave_one_out = false;          // RLOO, whose trainer is told the same
  std::int64_t rows = 1;               // completions that a GPU learns from at a time
  std::int64_t accumulation = 1, longest_prompt = 512;
  std::string prompt_key{}, rows_key{};
  GpusOfSource
      launched{};  // learners, as a launcher starts them; none: the machine's but the server's
};

// The GPUs that learners and a server beside them need, where a launcher says how many learn.
GpusOfSource with_server(MappedSource& source, const TrlGrpoWords& words, GpusOfSource learners);

// Puts learners, engines and batch; `words.rows` completions of one length each are a pack.
void put_trl_grpo(MappedSource& source, const TrlGrpoWords& words);

}  // namespace stepsim
