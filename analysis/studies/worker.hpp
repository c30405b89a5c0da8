// One replay per process: a study that needs several asks a forked worker for each.
#pragma once

#include <functional>
#include <string>

namespace stepsim {

// Runs the task in a child and returns what it returned. A UserError of the child is thrown here
// again; any other end of the child is a std::runtime_error that says how it ended.
std::string in_worker(const std::function<std::string()>& task);

}  // namespace stepsim
