// A row is a published throughput of an inference engine: what it served, on what, and how fast.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/rows/cells.hpp"
#include "scenarios/rows/row_catalog.hpp"
#include "topology/catalog.hpp"
#include "workloads/grpo/grpo.hpp"

namespace stepsim {

struct EngineRow {
  std::string id;
  int line = 0;
  std::string source, hardware, model, dtype, engine, input, output, command, notes;
  std::string why;  // the row, or a figure of it, is left out
  Cell gpus, tensor, prompts, concurrency;
  Cell total_rate, output_rate, request_rate;            // per second
  Cell duration, first_token_ms, per_token_ms, latency;  // s where not said otherwise
  std::vector<std::string> unreadable;
};

bool holds_engine_rows(const CsvTable& table);
std::vector<EngineRow> engine_rows(const CsvTable& table);
std::vector<std::string> engine_columns();

// A load is what is served, as an engine sees it.
struct EngineLoad {
  ClusterChoice cluster;
  std::string model;             // of the catalogue
  std::string stack;             // the engine's file
  Grpo engine;                   // its width and precision, and how long answers are
  Grpo prompts;                  // how long prompts are
  double input = 0, output = 0;  // tokens of a request, mean
  double asked = 0;              // tokens that an answer may have
  bool chat = false;             // requests come over HTTP, all at once
  bool benchmark = false;        // the engine's own, with its settings
  std::int64_t requests = 0;
  std::int64_t at_once = 0;  // requests that somebody waits for; 0: all are there from the start
};
struct ExpressedEngineRow {
  std::string id, family;
  EngineLoad load;
  std::vector<std::string> missing, assumed;

  bool expressed() const { return missing.empty(); }
};
ExpressedEngineRow express(const EngineRow& row, const RowCatalog& catalog);

}  // namespace stepsim
