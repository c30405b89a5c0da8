// Whole files, read and written in one go, with messages that a user can act on.
#pragma once

#include <string>
#include <string_view>

namespace stepsim {

// Writes to a temporary name beside `path` and renames: whoever looks sees the old file or the
// whole new one, and a failure leaves nothing behind. Throws UserError.
void write_file(const std::string& path, std::string_view bytes);

// Throws UserError when there is no such file, or it cannot be read.
std::string read_file(const std::string& path);

}  // namespace stepsim
