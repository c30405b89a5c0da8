// One measured training step of a table: the scenario that was run, and what was measured of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/rows/measured.hpp"
#include "workloads/strategy/stack.hpp"

namespace stepsim {

// Says that a weight sync alone was measured, and of it what engines wait for, or what learners do
// before they go on, with or without a file that somebody reads.
enum class SyncOf : std::uint8_t { none, engines, learners, unsaved };

struct StepRow {
  std::string id, family;
  int line = 0;
  std::string scenario;  // a file's text; empty: `missing` says why
  std::string run;       // the same without its name: rows of one run are alike
  std::string stack;
  std::vector<std::string> missing, assumed;
  // These are the same run with more computed again, least first, where the source does not say
  // how much was.
  struct Lighter {
    std::string checkpointing, scenario;
  };
  std::vector<Lighter> lighter;
  bool grpo = false;
  SyncOf sync_of = SyncOf::none;

  Cell step, tokens_per_gpu, tokens, tflops, mfu, hfu, memory;
  Cell generation, training, sync;  // s, of a GRPO step
  // Model FLOP of one token as the source's utilisation counts them; 0: not known. It may count
  // what a prediction counts.
  double flops_per_token = 0;
  bool counts_model_flops = false;
  std::optional<MemoryKind> memory_kind;  // nothing: what the stack's log counts
  std::string memory_unit;                // GB, GiB, or log: as the stack's log has it
  bool memory_bound = false;              // the figure says what was enough, not what was needed
  std::string outcome;                    // ran, oom, or not said
  std::map<std::string, std::string, std::less<>> printed;  // cells as the source has them

  // Returns what a column of the source says; "" and 0 where it says nothing.
  std::string said(std::string_view column) const;
  double number(std::string_view column) const;
  // Returns whether there is anything to hold a prediction against.
  bool has_figure() const;
  double measured_memory(const Stack::MemoryLog& log) const;  // bytes; 0: not stated
};

// Makes every row of the table one, whatever its cells hold. A scenario is in the column
// `scenario`, as YAML in one line, and in columns that are named by keys ("cluster.node"), which
// come on top; `id` alone has to be there.
std::vector<StepRow> step_rows(const Catalogue& data, const CsvTable& table);

// Returns the columns that are read by name, whatever a table is of.
std::vector<std::string> step_columns();

}  // namespace stepsim
