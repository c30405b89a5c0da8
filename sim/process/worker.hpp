// A study that needs several replays has them from workers: forks, each of which does one task
// after the other and sends back what it returned. A worker that dies has harmed nobody: where it
// had done other tasks before, the last is tried once more by a new one. Workers end when the
// process that asked does, however that one ended.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/base/wire.hpp"

namespace stepsim {

// A Progress is told how many tasks are done, of how many.
using Progress = std::function<void(std::size_t done, std::size_t of)>;

// Returns the number of workers that a study has unless told otherwise: one for each core.
std::size_t usual_workers();

template <class Answer>
using Tasks = std::vector<std::function<Answer()>>;

// An outcome is what a worker answered, or why it did not.
template <class Answer>
struct WorkerOutcome {
  std::optional<Answer> answer;
  std::string error{};
  bool died = false;       // a crash, a signal, too little memory; else the error is a UserError's
  bool no_memory = false;  // it died of that
};

// Returns the bytes of its own that this process has.
double own_memory();
// Lets the worker that calls it take so many bytes beside what it has begun with, and no more.
// Calls after the first do nothing.
void limit_worker(double bytes);

// These functions do the same with answers as bytes; the templates below give them types.
namespace wire {

using Task = std::function<std::string()>;
using NumberedTask = std::function<std::string(std::size_t)>;
using Heard = std::function<void(std::size_t, std::string)>;

std::string from_worker(const Task& task);
std::string from_fresh_child(const Task& task);
void from_workers(std::size_t count, std::size_t at_once, const NumberedTask& task,
                  const Heard& done);
void outcomes_from_workers(
    std::size_t count, std::size_t at_once, const NumberedTask& task,
    const std::function<void(std::size_t, const WorkerOutcome<std::string>&)>& done,
    const std::function<void()>& each_second);

}  // namespace wire

// Runs the task in a child and returns what it returned. A UserError of the child is thrown here
// again, with all its problems, and so are std::bad_alloc and MachineError; any other end of the
// child is a std::runtime_error that says how it ended, a MachineError if it was killed. A worker
// does such a task by itself.
template <class Task>
auto in_worker(const Task& task) {
  using Answer = std::invoke_result_t<const Task&>;
  return from_wire<Answer>(wire::from_worker([&] { return to_wire(task()); }));
}

// Does the same in a child of its own even where a worker asks, for what a process can do only
// once.
template <class Task>
auto in_fresh_child(const Task& task) {
  using Answer = std::invoke_result_t<const Task&>;
  return from_wire<Answer>(wire::from_fresh_child([&] { return to_wire(task()); }));
}

// Runs tasks 0 to count - 1, started in this order; `done` hears of each answer as soon as it is
// there, in whatever order that is. When one fails, or `done` does, the others are ended and the
// error thrown.
template <class Task, class Done>
void in_workers(std::size_t count, std::size_t at_once, const Task& task, const Done& done) {
  using Answer = std::invoke_result_t<const Task&, std::size_t>;
  wire::from_workers(
      count, at_once, [&](std::size_t i) { return to_wire(task(i)); },
      [&](std::size_t i, const std::string& bytes) { done(i, from_wire<Answer>(bytes)); });
}

// Runs all tasks, at most `at_once` of them at a time, and returns the answers in the order of the
// tasks.
template <class Answer>
std::vector<Answer> in_workers(const Tasks<Answer>& tasks, std::size_t at_once,
                               const Progress& progress = {}) {
  std::vector<Answer> answers(tasks.size());
  std::size_t finished = 0;
  in_workers(
      tasks.size(), at_once, [&](std::size_t i) { return tasks[i](); },
      [&](std::size_t i, Answer answer) {
        answers[i] = std::move(answer);
        if (progress) progress(++finished, tasks.size());
      });
  return answers;
}

// Does the same, but an error or the death of one worker is its own outcome and not everybody's.
// `each_second` is called while no answer comes.
template <class Task, class Done>
void outcomes_in_workers(std::size_t count, std::size_t at_once, const Task& task, const Done& done,
                         const std::function<void()>& each_second = {}) {
  using Answer = std::invoke_result_t<const Task&, std::size_t>;
  wire::outcomes_from_workers(
      count, at_once, [&](std::size_t i) { return to_wire(task(i)); },
      [&](std::size_t i, const WorkerOutcome<std::string>& said) {
        WorkerOutcome<Answer> outcome{std::nullopt, said.error, said.died, said.no_memory};
        if (said.answer) outcome.answer = from_wire<Answer>(*said.answer);
        done(i, outcome);
      },
      each_second);
}

template <class Answer>
std::vector<WorkerOutcome<Answer>> outcomes_in_workers(const Tasks<Answer>& tasks,
                                                       std::size_t at_once) {
  std::vector<WorkerOutcome<Answer>> outcomes(tasks.size());
  outcomes_in_workers(
      tasks.size(), at_once, [&](std::size_t i) { return tasks[i](); },
      [&](std::size_t i, const WorkerOutcome<Answer>& outcome) { outcomes[i] = outcome; });
  return outcomes;
}

}  // namespace stepsim
