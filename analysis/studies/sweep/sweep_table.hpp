// A table is what a sweep found, one row per point; files keep it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/studies/outcome/metrics.hpp"
#include "analysis/studies/sweep/sweep_plan.hpp"

namespace stepsim {

struct SweepRow {
  std::size_t index = 0;  // of the point in the whole sweep
  SweepValues values;
  Outcome outcome;
};

struct SweepTable {
  std::string title;     // of the scenario
  std::string scenario;  // as read, before anything is set
  std::string digest;    // equal for equal questions, whoever computes which part
  std::vector<std::string> keys;
  std::size_t points = 0;        // of the whole sweep; the rows may be a shard's
  std::vector<SweepRow> rows;    // by index
  std::string source{};          // the scenario's path or name
  std::vector<Setting> fixed{};  // set in all points
  std::size_t unanswered = 0;    // rows whose worker died just now; no part of the file
};

// Writes cells for machines: every key, feasible, reason, bottleneck, every metric that some row
// knows.
std::string csv_of(const SweepTable& table);

// Writes HDF5. Equal tables are equal bytes; docs/sweeps.md says what stands where.
void write_sweep(const std::string& path, const SweepTable& table);
// Returns whether the file holds a sweep, and is not another HDF5 file or none.
bool holds_sweep(const std::string& path);
// Throws UserError when the file is missing, damaged, or no sweep.
SweepTable read_sweep(const std::string& path);

// Merges the whole out of its shards, in any order. Throws UserError when they belong to different
// sweeps, overlap, or leave points out.
SweepTable merge_shards(std::span<const std::string> paths);

}  // namespace stepsim
