// Rows of measured tables, whatever they are of, asked in workers and held against their figures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "analysis/studies/fidelity/row_validation.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {

template <class Answer>
struct RowTask {
  PredictedRow result;  // named; with what is missing, when nothing can be asked
  std::function<Answer(const MaybeDraw&)> ask;  // what a worker says
  std::function<void(const Answer&, PredictedRow&)> compare;
};

// Returns the task of a row that says nothing but itself.
template <class Answer, class Row>
RowTask<Answer> task_of(const Row& row) {
  RowTask<Answer> task;
  task.result.id = row.id;
  task.result.family = row.family;
  task.result.missing = row.missing;
  task.result.assumed = row.assumed;
  return task;
}

// Returns the errors between which eight draws of ten lie; between two draws it interpolates.
Range error_interval_of(const PredictedRow& row);

// Predicts the rows in the order of the tasks. With `samples` each is asked that often again, with
// drawn constants.
template <class Answer>
std::vector<PredictedRow> predict_all(const std::vector<RowTask<Answer>>& tasks,
                                      std::uint32_t samples, std::uint64_t seed,
                                      const std::shared_ptr<const WeightedDraws>& like = {}) {
  const std::uint32_t runs = 1 + samples;
  const auto draw_of = [&](std::uint32_t run) {
    return run == 0 ? MaybeDraw()
                    : MaybeDraw({.seed = seed, .sample = run - 1, .of = samples, .after = like});
  };
  Tasks<Answer> questions;
  for (const RowTask<Answer>& task : tasks)
    for (std::uint32_t run = 0; task.result.predicted() && run < runs; ++run)
      questions.emplace_back([&task, run, draw_of] { return task.ask(draw_of(run)); });
  const auto outcomes = outcomes_in_workers(questions, usual_workers());
  std::vector<PredictedRow> results;
  results.reserve(tasks.size());
  auto next = outcomes.begin();
  for (const RowTask<Answer>& task : tasks) {
    PredictedRow& result = results.emplace_back(task.result);
    if (!task.result.predicted()) continue;
    const auto stated = next;
    next += runs;
    for (auto each = stated; each != next; ++each)
      if (each->died) result.crashes.push_back(each->error);
    // A scenario that the catalogue refuses is an answer, too: nothing in a table stops the rest.
    if (!stated->answer) {
      result.missing.push_back(stated->error);
      continue;
    }
    task.compare(*stated->answer, result);
    for (std::uint32_t run = 1; run < runs; ++run) {
      PredictedRow drawn = task.result;
      if (!stated[run].answer) continue;
      task.compare(*stated[run].answer, drawn);
      if (drawn.timed) result.drawn.push_back({*draw_of(run), drawn.step_error});
    }
    if (samples > 0 && result.timed) result.interval = error_interval_of(result);
  }
  return results;
}

}  // namespace stepsim
