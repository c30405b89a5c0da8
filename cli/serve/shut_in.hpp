// A process that keeps itself from files: what a stranger's file names cannot be opened.
#pragma once

#include <span>
#include <string>

namespace stepsim {

// Returns whether this kernel can do that: Linux 5.13 and later, where Landlock is switched on.
bool can_shut_in();

// Lets this process and its children from now on read nothing but what lies in these folders, write
// into `writable` alone, and start no program. Throws std::system_error where that fails.
void shut_in(std::span<const std::string> readable, const std::string& writable);

}  // namespace stepsim
