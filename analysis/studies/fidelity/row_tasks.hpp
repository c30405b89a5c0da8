// Rows of measured tables, whatever they are of, asked in workers and held against their figures.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/studies/fidelity/row_validation.hpp"

namespace stepsim {

struct RowTask {
  PredictedRow result;  // named; with what is missing, when nothing can be asked
  std::function<std::string(const MaybeDraw&)> ask;  // what a worker says
  std::function<void(const std::string& answer, PredictedRow&)> compare;
};

// In the order of the tasks. With `samples` each is asked that often again, with drawn constants.
std::vector<PredictedRow> predict_all(const std::vector<RowTask>& tasks, std::uint32_t samples,
                                      std::uint64_t seed);

}  // namespace stepsim
