// The parts of a scenario that a row is turned into, one after the other.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/rows/expressed_row.hpp"
#include "scenarios/rows/row_catalog.hpp"
#include "scenarios/rows/row_words.hpp"
#include "scenarios/rows/step_row.hpp"

namespace stepsim {

// This holds what the row states, and what somebody has to assume where neither a recipe nor the
// stack says it; nothing else.
struct RowScenario {
  explicit RowScenario(const std::string& id);

  Document document;
  std::string stack{}, gpu{};  // names
  std::vector<const Recipe*> recipes{};
  std::vector<std::string> missing{}, assumed{};

  void lack(std::string what) { missing.push_back(std::move(what)); }
  void assume(std::string what) { assumed.push_back(std::move(what)); }
  // The value is YAML.
  void set(std::string_view path, std::string_view value);
  void set(std::string_view path, double whole);
  void set(std::string_view path, std::same_as<bool> auto flag) {  // a literal text is none
    set(path, std::string_view(flag ? "true" : "false"));
  }
  // A copy with what recipes and stack fill in, as far as the row has been written.
  Document resolved(const RowCatalog& catalog) const;
  std::string text() const { return document.canonical(); }
};

void write_model(const StepRow& row, const RowCatalog& catalog, RowScenario& made);
void write_cluster(const StepRow& row, const RowCatalog& catalog, RowScenario& made);
void write_stack(const StepRow& row, const RowCatalog& catalog, RowScenario& made);
// Finds which recipes the row is of, and fills in what these fix of its empty cells.
void find_recipes(StepRow& row, const RowCatalog& catalog, RowScenario& made);
void write_recipes(RowScenario& made);
void write_strategy(const StepRow& row, const RowCatalog& catalog, RowScenario& made);
void write_checkpointing(const StepRow& row, const RowCatalog& catalog, RowScenario& made);
void write_offload(const StepRow& row, RowScenario& made);
void write_precision(const StepRow& row, const RowCatalog& catalog, RowScenario& made);
void write_pipeline(const StepRow& row, const RowCatalog& catalog, RowScenario& made);
void write_experts(const StepRow& row, const RowCatalog& catalog, RowScenario& made);
void write_adapters(const StepRow& row, RowScenario& made);
// Names what is not the row's own, as assumptions that a reader should know of.
void name_defaults(const StepRow& row, const RowCatalog& catalog, RowScenario& made);

// Returns "dense" or "moe", with "offload" or "lora" behind it.
std::string kind_of(const StepRow& row);
bool has_experts(const StepRow& row);
// Returns how many ranks hold different experts and go through the same rows.
double repeats_rows(const StepRow& row);
bool offloads(const StepRow& row);
bool only_updates(const StepRow& row);  // times the optimizer alone
bool has_adapter(const StepRow& row);

// Returns what has been written, with its name on top, or what is missing.
ExpressedRow expressed(RowScenario made, std::string family);

// Quotes the text as YAML needs it.
std::string quoted_text(std::string_view text);

}  // namespace stepsim
