// One replay per process: a study that needs several asks a forked worker for each.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace stepsim {

// Runs the task in a child and returns what it returned. A UserError of the child is thrown here
// again; any other end of the child is a std::runtime_error that says how it ended.
std::string in_worker(const std::function<std::string()>& task);

// All tasks, at most `at_once` of them at a time; answers in the order of the tasks.
std::vector<std::string> in_workers(std::span<const std::function<std::string()>> tasks,
                                    std::size_t at_once);

}  // namespace stepsim
