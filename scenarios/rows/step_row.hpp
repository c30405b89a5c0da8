// One published training step, as a table prints it: what ran, on what, and what was measured.
#pragma once

#include <string>
#include <vector>

#include "scenarios/rows/cells.hpp"

namespace stepsim {

struct StepRow {
  std::string id;
  std::string refers;  // id of the row, of any table, whose run this is
  int line = 0;
  std::string source, hardware, interconnect, framework, model, task, strategy, offload,
      checkpointing, precision, optimizer, compile, flops_definition, memory_unit, oom, derived,
      notes;
  Cell nodes, gpus;
  Cell gpu_memory;  // of one, in GB or GiB as it is sold
  Cell parameters, layers, hidden, heads, kv_heads, ffn, vocabulary, experts, per_token,
      expert_width;  // parameters in 1e9
  Cell sequence, micro_batch, accumulation, global_batch;
  Cell stage, shards, replicas, tensor_parallel, pipeline, interleave, expert_parallel,
      context_parallel;
  Cell tokens_per_gpu, tokens, step, tflops, mfu, hfu, memory;  // memory in `memory_unit`
  std::vector<std::string> unreadable;  // "gpus: expected a number, found "many""
};

// Makes every row of the table one, whatever its cells hold. Columns may be missing; `id` alone has
// to be there.
std::vector<StepRow> step_rows(const CsvTable& table);

// These go by the names of columns: what a cell holds, as text.
bool is_column(std::string_view column);
std::vector<std::string> step_columns();
std::string cell_of(const StepRow& row, std::string_view column);
// Fills in what a source says of a cell that the row leaves open, or in which it only says that it
// does not know. Returns false where the row says it.
bool fill_in(StepRow& row, std::string_view column, const std::string& text);
// Whatever the row says.
void put_in(StepRow& row, std::string_view column, const std::string& text);

// A row that refers to another one is of the same run: what it does not say of that run is taken
// from there. What was measured is not, and what both have measured counts once, so that a row
// that says nothing else is gone.
void complete_references(std::vector<StepRow>& rows);

// Returns whether there is anything to hold a prediction against.
bool has_figure(const StepRow& row);

// Returns whether the part stands in the text.
bool contains(std::string_view text, std::string_view part);

}  // namespace stepsim
