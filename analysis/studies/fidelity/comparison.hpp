// This holds predicted collectives against published measurements: signed error per row, medians
// per source.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/rows/measured.hpp"

namespace stepsim {

struct ComparedRow {
  MeasuredCollective measured;
  std::string operation;  // in our words
  std::string machine;    // "h100-8 x2, efa-v2"; empty: not compared
  double time = 0;        // measured, s
  double predicted = 0;   // s
  double error = 0;       // predicted / measured - 1, of the time
  std::string algorithm;
  std::string note;  // why it is not compared, or why it is far off

  bool compared() const { return !machine.empty(); }
  // Returns whether the prediction is off by more than a factor of two.
  bool far_off() const { return compared() && (error > 1 || error < -0.5); }
};

// These are the rows of one kind together. Small messages cost latency, large ones bandwidth: hence
// two medians.
struct Errors {
  struct Share {
    std::size_t rows = 0;
    double median = 0;  // of the absolute error
    double p90 = 0;
    double mean = 0;  // signed
  };
  Share small;
  Share large;       // from 16 MiB
  double worst = 0;  // signed, the largest as a factor
};

struct SourceErrors {
  std::string source;
  std::string machine;
  Errors errors;
};

struct Comparison {
  std::vector<ComparedRow> rows;      // as they stand in the table
  std::vector<SourceErrors> sources;  // by first appearance
  Errors all;
};

// Rows of other machines than `only` (when given) or other operations than `operation` (when not
// empty) are not looked at. Forks a worker per machine.
struct CompareOptions {
  std::optional<ClusterChoice> only;
  std::string operation;
  std::vector<RowNote> notes;
};
Comparison compare(const Catalogue& data, std::span<const MeasuredCollective> rows,
                   const CompareOptions& options);

}  // namespace stepsim
