// Files of other programs do not hold machine, model and data. This takes something instead of
// each, and says so.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "workloads/strategy/job.hpp"

namespace stepsim {

// This is what a source says of its machine: how many GPUs, not which. 0: nothing.
struct GpusOfSource {
  std::int64_t gpus = 0;   // in all
  std::int64_t nodes = 0;  // that they are on, alike
  std::string why{};       // "the degrees make so many"
  std::int64_t each = 0;   // of each node, where the source says so
  // Whoever starts it starts learners alone: engines have others of the same nodes.
  bool learners_alone = false;
  // Its program runs one process where neither a launcher nor sharding is named.
  bool alone = false;
};

// The machine that the file's name says, else the usual one with as many GPUs as the source says. A
// machine that the name says and the catalogue does not have is noted in `source`. Of a machine
// that the command line names, as many nodes, and GPUs of each, as the source says.
void assume_machine(const SourceQuestion& question, const Table& source, Translation& translation,
                    const GpusOfSource& said = {});

// Puts the model called `said` at `key` of the source; "": it says none. One that cannot be found
// is noted there.
void assume_model(const SourceQuestion& question, const Table& source, const std::string& key,
                  Translation& translation);

// This says how full rows are, and how much data there is. `epochs` is how often it is gone
// through; with `steps_said` the source says how long the run is.
struct DataOfSource {
  bool packed = true, pairs = false;
  double epochs = 1;
  bool steps_said = false, fill_said = false;
  Padding padding = Padding::row;  // of rows that are not packed
  std::string_view padding_key{};
};
void assume_data(const SourceQuestion& question, const DataOfSource& data,
                 Translation& translation);

}  // namespace stepsim
