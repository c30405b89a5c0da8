// A published GRPO step as a scenario, or what keeps it from being one.
#pragma once

#include <string>
#include <vector>

#include "scenarios/rows/cells.hpp"
#include "scenarios/rows/expressed_row.hpp"

namespace stepsim {

struct GrpoRow {
  std::string id;
  int line = 0;
  std::string source, hardware, framework, model, algorithm, policy_mode, train_strategy, offload,
      precision, notes;
  Cell nodes, gpus, train_gpus, gen_gpus;
  Cell max_sequence, mean_sequence, generation_batch, train_batch, samples;
  Cell gen_tensor, gen_pipeline, train_tensor, train_context, train_expert, train_pipeline;
  Cell tokens_per_gpu, step, generation, training, sync, memory;  // s, memory in GB
  Cell utilisation;  // of the learners' peak while they update the policy, in percent
  std::vector<std::string> unreadable;
};

// Returns whether the columns are those of a table of GRPO steps.
bool holds_grpo_rows(const CsvTable& table);
std::vector<GrpoRow> grpo_rows(const CsvTable& table);
std::vector<std::string> grpo_columns();
// A weight sync alone was measured, and of it what engines wait for, or what learners do where the
// row has no engines.
bool only_sync(const GrpoRow& row);
bool has_engines(const GrpoRow& row);
// Weights come to host memory, and nobody is there that would read a file.
bool saves_nothing(const GrpoRow& row);
ExpressedRow express(const GrpoRow& row, const RowCatalog& catalog);

}  // namespace stepsim
