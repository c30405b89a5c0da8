// The parts of a scenario that a row is turned into, one after the other.
#pragma once

#include <string>
#include <vector>

#include "scenarios/rows/row_catalog.hpp"
#include "scenarios/rows/row_words.hpp"
#include "scenarios/rows/step_row.hpp"

namespace stepsim {

struct RowText {
  std::string model, cluster, job, strategy;  // YAML, with their keys
  std::string stack, gpu;                     // names
  std::vector<std::string> missing, assumed;

  void lack(std::string what) { missing.push_back(std::move(what)); }
  void assume(std::string what) { assumed.push_back(std::move(what)); }
};

void write_model(const StepRow& row, const RowCatalog& catalog, RowText& text);
void write_cluster(const StepRow& row, const RowCatalog& catalog, RowText& text);
void write_stack(const StepRow& row, const RowCatalog& catalog, RowText& text);
void write_strategy(const StepRow& row, const RowCatalog& catalog, RowText& text);
// What is computed again and what is kept elsewhere; `usual` where the row does not say.
void write_checkpointing(const StepRow& row, const std::string& usual, RowText& text);
void write_offload(const StepRow& row, RowText& text);
void write_precision(const StepRow& row, RowText& text);
void write_pipeline(const StepRow& row, RowText& text);
// Experts and adapters, as the stack usually has them where the row does not say.
void write_experts(const StepRow& row, const RowCatalog& catalog, RowText& text);
void write_adapters(const StepRow& row, const RowCatalog& catalog, RowText& text);

// "dense", "moe", with "offload" or "lora" behind it.
std::string kind_of(const StepRow& row);
bool has_experts(const StepRow& row);
// Ranks that hold different experts and go through the same rows.
double repeats_rows(const StepRow& row);
bool offloads(const StepRow& row);
bool only_updates(const StepRow& row);  // times the optimizer alone
bool has_adapter(const StepRow& row);

// As YAML needs it.
std::string quoted_text(std::string_view text);

}  // namespace stepsim
