// These measure what a process that answers a question takes of this machine, and keep it small.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>

namespace stepsim {

// Returns the processor time of a process and of the workers that it has now; 0 when it has ended.
std::chrono::nanoseconds processor_time(pid_t process);

// Lets the process and its workers give way to others, by 0 to 19 more than this process does.
void give_way(pid_t process, int by);

// Makes this process and those that it starts fail to get more memory than this, each, from now on.
void limit_memory(std::uint64_t bytes);

}  // namespace stepsim
