// One replay per process: a study that needs several asks a forked worker for each. A worker ends
// when the process that asked does, however that one ended.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace stepsim {

// Runs the task in a child and returns what it returned. A UserError and a std::bad_alloc of the
// child are thrown here again; any other end of it is a std::runtime_error that says how it ended.
std::string in_worker(const std::function<std::string()>& task);

// Told how many tasks are done, of how many.
using Progress = std::function<void(std::size_t done, std::size_t of)>;

enum class Ending {
  answered,
  refused,  // by a UserError: the question is wrong
  died      // without an answer: a crash, a signal, not enough memory
};
// What a worker said, or why it did not.
struct WorkerOutcome {
  Ending ending{};
  std::string text;
};

// As the functions below, but what becomes of one worker is its own outcome and not everybody's.
std::vector<WorkerOutcome> outcomes_in_workers(std::span<const std::function<std::string()>> tasks,
                                               std::size_t at_once);
void outcomes_in_workers(std::size_t count, std::size_t at_once,
                         const std::function<std::string(std::size_t)>& task,
                         const std::function<void(std::size_t, const WorkerOutcome&)>& done);

// All tasks, at most `at_once` of them at a time; answers in the order of the tasks.
std::vector<std::string> in_workers(std::span<const std::function<std::string()>> tasks,
                                    std::size_t at_once, const Progress& progress = {});

// As many as there are cores.
std::size_t usual_workers();

// Tasks 0 to count - 1, started in this order; `done` hears of each as soon as it has ended, in
// whatever order that is. When one fails, or `done` does, the others are ended and the error
// thrown.
void in_workers(std::size_t count, std::size_t at_once,
                const std::function<std::string(std::size_t)>& task,
                const std::function<void(std::size_t, std::string)>& done);

}  // namespace stepsim
