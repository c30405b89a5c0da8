// A published training step as a scenario, or what keeps it from being one.
#pragma once

#include <string>
#include <vector>

#include "scenarios/rows/row_catalog.hpp"
#include "scenarios/rows/step_row.hpp"
#include "workloads/strategy/stack.hpp"

namespace stepsim {

struct ExpressedRow {
  std::string id;
  std::string family;  // "dense llm-foundry h100-sxm"
  std::string stack;
  std::string scenario{};  // a file's text
  std::string run{};       // the same without its name: rows of one run are alike
  std::vector<std::string>
      missing{};  // what the row does not say or a scenario cannot; then no text
  std::vector<std::string> assumed{};  // what the row does not say and a scenario has to
  // These are the same run with more computed again, least first, where the row does not say how
  // much was.
  struct Lighter {
    std::string checkpointing, scenario;
  };
  std::vector<Lighter> lighter{};

  bool expressed() const { return missing.empty(); }
};
ExpressedRow express(const StepRow& row, const RowCatalog& catalog);

// Model FLOP of one token as the row's own definition of its utilisation counts them; 0: the
// definition is not stated or not known. `hfu`: with the recomputation, where that is another
// figure.
double counted_flops_per_token(const StepRow& row);
// FLOP/s that the row's utilisation is a share of, by its GPU's file; 0: unknown.
double counted_peak(const StepRow& row, const RowCatalog& catalog);
// These return the bytes of the row's memory, 0: not stated, and what they count. The row says it,
// or the log of the stack does.
double measured_memory(const StepRow& row, const Stack::MemoryLog& log);
MemoryKind measured_kind(const StepRow& row, const Stack::MemoryLog& log);
// Returns whether the figure says no more than that it was enough: it stands in the head of a
// script, which people round up, or is all that the card has.
bool memory_is_bound(const StepRow& row);

}  // namespace stepsim
