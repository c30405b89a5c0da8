// This predicts, row by row, tables of published training steps: how far off are we, and on which
// rows can nothing be said?
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/studies/fidelity/validation.hpp"
#include "scenarios/rows/step_row.hpp"
#include "scenarios/scenario.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// One column of a row that holds a measurement.
struct RowFigure {
  std::string metric;  // the column: "step_s", "tok_s_gpu", "mem_GB", ...
  double measured = 0;
  double predicted = 0;

  double error() const { return predicted / measured - 1; }
};

// This is the predicted time of a step over the measured one, less one, with constants drawn like
// that.
struct DrawnError {
  Draw draw;
  double error = 0;
};

struct PredictedRow {
  std::string id;
  std::string family;
  std::string scenario{};  // the file that was predicted, where the row became one
  std::vector<RowFigure> figures{};
  // These say why the row is not predicted; it may be refused as a scenario, too.
  std::vector<std::string> missing{};
  // These are crashes of its workers: what is left of the row is not to be trusted.
  std::vector<std::string> crashes{};
  std::vector<std::string> assumed{};
  double step_error = 0;  // predicted time of a step over the measured one, less one; 0: no time
  bool timed = false;
  double tokens_per_gpu = 0, measured_tokens_per_gpu = 0;  // per second, as the model counts them
  std::optional<double> memory_error;                      // of a bound: 0 below it
  MemoryKind memory_counts = MemoryKind::unsaid;
  bool memory_bound = false;  // the figure says what was enough, not what was needed
  std::vector<DrawnError> drawn;
  std::optional<Range> interval;  // of the step error: eight of ten draws
  double needed = 0, capacity = 0;
  bool measured_fits = true;
  bool judged = true;  // else what was computed again was chosen so that it fits
  Fit fit{};
  std::optional<double> chance;  // that it fits; a job of reinforcement learning is given none
  std::string asked{}, known{};  // a question of somebody, and what came of it

  bool right() const { return measured_fits == (fit != Fit::oom); }
  bool predicted() const { return missing.empty(); }
};

struct RowQuestion {
  Catalogue data;
  std::span<const StepRow> rows;
  std::uint32_t samples = 0;  // draws of the constants for each row; 0: no interval
  std::uint64_t seed = 1;
  std::shared_ptr<const WeightedDraws> like = {};  // draws are taken out of these
};
// Predicts the rows in their order, in workers on all cores.
std::vector<PredictedRow> predict_rows(const RowQuestion& question);

struct RowFamily {
  std::string name;
  std::size_t rows = 0;        // with a time
  double median = 0, p90 = 0;  // of the absolute step errors
  double signed_mean = 0;
  std::string worst;
  double worst_error = 0;
  std::size_t memory_rows = 0;
  double memory_median = 0;
  std::size_t fits = 0, fits_right = 0;  // rows whose outcome is known and judged, and met
  std::size_t inside = 0, intervals = 0;
  double width = 0;  // median of the intervals, over the predicted time
};
// Returns the families by name; the last is all of them.
std::vector<RowFamily> families_of(std::span<const PredictedRow> rows);

// These rows were given about the same chance to fit.
struct ChanceRows {
  double low = 0;  // of a tenth
  std::size_t rows = 0, fitted = 0;
  double mean = 0;  // chance
};
// Returns the tenths that have rows whose outcome is judged.
std::vector<ChanceRows> chances_of(std::span<const PredictedRow> rows);

// These figures of memory count the same.
struct MemoryErrors {
  std::string_view counts;  // "allocated", ..., "unsaid", or "at most"
  std::size_t rows = 0;
  double median = 0, p90 = 0;  // of the absolute errors
  double signed_mean = 0;
  std::string worst;
  double worst_error = 0;
};
// Returns those that there are, in the order of MemoryKind, and bounds behind them.
std::vector<MemoryErrors> memory_errors(std::span<const PredictedRow> rows);

}  // namespace stepsim
