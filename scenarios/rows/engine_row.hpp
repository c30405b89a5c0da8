// A row is a published throughput of an inference engine: what it served, on what, and how fast.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/rows/measured.hpp"
#include "topology/catalog.hpp"
#include "workloads/grpo/grpo.hpp"

namespace stepsim {

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
  std::int64_t at_once = 0;    // requests that somebody waits for; 0: all are there from the start
  std::int64_t sequences = 0;  // in a batch at most; 0: what the engine's server takes by default
};

struct EngineRow {
  std::string id, family;
  int line = 0;
  EngineLoad load;
  std::vector<std::string> missing, assumed;
  Cell prompts, total_rate, output_rate, request_rate;   // per second
  Cell duration, first_token_ms, per_token_ms, latency;  // s where not said otherwise
};

// Returns whether the table is one of engines: it has a column `load`, which says what was served
// as YAML in one line.
bool holds_engine_rows(const CsvTable& table);
std::vector<EngineRow> engine_rows(const CsvTable& table);
std::vector<std::string> engine_columns();

}  // namespace stepsim
