#include "analysis/studies/fidelity/row_tasks.hpp"

#include <algorithm>

#include "analysis/studies/predict/worker.hpp"

namespace stepsim {
namespace {

// Between neighbours in order: eight of ten draws.
Range interval_of(const PredictedRow& row) {
  std::vector<double> errors{row.step_error};
  for (const DrawnError& each : row.drawn) errors.push_back(each.error);
  std::sort(errors.begin(), errors.end());
  return {quantile(errors, 0.1), quantile(errors, 0.9)};
}

}  // namespace

std::vector<PredictedRow> predict_all(const std::vector<RowTask>& tasks, std::uint32_t samples,
                                      std::uint64_t seed) {
  const std::uint32_t runs = 1 + samples;
  const auto draw_of = [&](std::uint32_t run) {
    return Draw{.seed = seed, .sample = run - 1, .of = samples};
  };
  std::vector<std::function<std::string()>> questions;
  for (const RowTask& task : tasks)
    for (std::uint32_t run = 0; task.result.predicted() && run < runs; ++run)
      questions.emplace_back([&task, run, draw_of] {
        if (run == 0) return task.ask({});
        return task.ask(draw_of(run));
      });
  const std::vector<WorkerOutcome> answers = outcomes_in_workers(questions, usual_workers());
  std::vector<PredictedRow> results;
  results.reserve(tasks.size());
  std::size_t next = 0;
  for (const RowTask& task : tasks) {
    PredictedRow& result = results.emplace_back(task.result);
    if (!task.result.predicted()) continue;
    for (std::uint32_t run = 0; run < runs; ++run)
      if (answers[next + run].ending == Ending::died)
        result.crashes.push_back(answers[next + run].text);
    // A scenario that the catalogue refuses is an answer, too: nothing in a table stops the rest.
    if (answers[next].ending != Ending::answered) {
      result.missing.push_back(answers[next].text);
    } else {
      task.compare(answers[next].text, result);
      for (std::uint32_t run = 1; run < runs; ++run) {
        PredictedRow drawn = task.result;
        if (answers[next + run].ending != Ending::answered) continue;
        task.compare(answers[next + run].text, drawn);
        if (drawn.timed) result.drawn.push_back({draw_of(run), drawn.step_error});
      }
      if (samples > 0 && result.timed) result.interval = interval_of(result);
    }
    next += runs;
  }
  return results;
}

}  // namespace stepsim
