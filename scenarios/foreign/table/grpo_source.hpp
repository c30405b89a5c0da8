// Readers of GRPO runs share these.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scenarios/foreign/table/assumed.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"

namespace stepsim {

// No file says how long responses are: only how long they may be.
void assume_responses(MappedSource& source);

// Puts rounds in which so many prompts are answered at a time, until enough groups have a signal.
// `key` says how many, `filter` that groups without a signal are left out. No file says how many
// these are.
void put_rounds(MappedSource& source, std::int64_t prompts, std::string_view key,
                std::string_view filter);

// Learners take equal shares of every batch, on all GPUs or on GPUs of their own.
struct LearnersOfSource {
  std::int64_t tensor = 1, context = 1, stages = 1, experts = 1, expert_tensor = 1;
  bool sequence = false;
  std::int64_t first_layers = 0, last_layers = 0;  // of the stages at both ends; 0: not said
  // These are the keys that say so; "": there is none.
  std::string tensor_key{}, context_key{}, stages_key{}, experts_key{}, expert_tensor_key{},
      sequence_key{};
};
// Reads them by Megatron's names, each behind `block`: "engine.".
LearnersOfSource megatron_learners(MappedSource& source, const std::string& block);
void put_learners(MappedSource& source, const LearnersOfSource& learners);

// Returns the GPUs that learners and a server of so many beside them need. Nodes are alike.
GpusOfSource beside_server(GpusOfSource learners, std::int64_t server);

// A batch is divided into so many updates; `batch` and `part` count the same.
void put_updates(MappedSource& source, std::int64_t batch, std::int64_t part, std::string_view key);

}  // namespace stepsim
