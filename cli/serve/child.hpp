// A question of a server is computed in a process of its own. This is what begins and ends one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stepsim {

// Makes a process that was just forked end when the server does, and read no standard input.
void begin_question(pid_t server);

// Writes all of it. Throws std::system_error where there is no room.
void write_all(int file, std::string_view bytes);

// Says why a process ended without an answer. `status` is of waitpid().
bool was_killed(int status);
std::string end_text(int status);

// Returns the processor time of a process and of the workers that it has now; 0 when it has ended.
std::chrono::nanoseconds processor_time(pid_t process);

// Lets the process and its workers give way to others, by 0 to 19 more than this process does.
void give_way(pid_t process, int by);

// Makes this process and those that it starts fail to get more memory than this, each, from now on.
void limit_memory(std::uint64_t bytes);

// Returns whether this kernel can do that: Linux 5.13 and later, where Landlock is switched on.
bool can_shut_in();

// Lets this process and its children from now on read nothing but what lies in these folders, write
// into `writable` alone, and start no program. Throws std::system_error where that fails.
void shut_in(std::span<const std::string> readable, const std::string& writable);

}  // namespace stepsim
