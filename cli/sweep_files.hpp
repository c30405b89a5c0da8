// A study of many points has these files: its tables, and the journal that it goes on from.
#pragma once

#include <span>
#include <string>

#include "analysis/studies/sweep/sweep_table.hpp"

namespace stepsim {

// Throws UserError where a sweep of this name would write over one of its inputs.
void require_own_names(const std::string& stem, std::span<const std::string> inputs);

// Writes STEM.csv and STEM.h5.
void write_tables(const std::string& stem, const SweepTable& table);

// Writes STEM.h5, for merge.
void write_shard(const std::string& stem, const SweepTable& table);

// After the tables are written; returns `code`. Points that got no answer may get one next time,
// when there is more memory: then the journal stays, and the same command computes only those.
int finish_sweep(const std::string& journal, const SweepTable& table, int code);

}  // namespace stepsim
