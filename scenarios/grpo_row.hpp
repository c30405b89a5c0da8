// A published GRPO step as a scenario, or what keeps it from being one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepsim {

// What a table says; 0: it does not.
struct GrpoRow {
  std::string id, source, framework, policy_mode, offload;
  std::string model, node, stack;  // names of the catalogue; empty: it has none
  std::int64_t nodes = 0, max_sequence = 0, generation_batch = 0, train_batch = 0, samples = 0;
  std::int64_t engine_parallel = 0, train_tensor = 0, train_expert = 0, train_pipeline = 0;
  double mean_sequence = 0;  // prompt and response
  double step_seconds = 0, tokens_per_second_per_gpu = 0;
};

struct GrpoRowText {
  std::string scenario;              // a file's text; empty when something is missing
  std::vector<std::string> missing;  // what the row does not say or a scenario cannot
  std::vector<std::string> assumed;  // what the row does not say and a scenario has to
};
GrpoRowText express(const GrpoRow& row);

}  // namespace stepsim
