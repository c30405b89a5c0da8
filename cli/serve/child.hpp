// A question of a server is computed in a process of its own. This is what begins and ends one.
#pragma once

#include <sys/types.h>

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

}  // namespace stepsim
