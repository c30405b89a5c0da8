// Whole files, read and written in one go, with messages that a user can act on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// Writes to a temporary name beside `path` and renames: whoever looks sees the old file or the
// whole new one, and a failure leaves nothing behind. Throws UserError.
void write_file(const std::string& path, std::string_view bytes);

// A file's name is on the drive, too, when this returns. Throws UserError.
void sync_folder_of(const std::string& path);

// Throws UserError when there is no such file, or it may not be read, and MachineError when reading
// fails. `most`: what stands behind so many bytes is left.
std::string read_file(const std::string& path, std::size_t most = std::string::npos);

// Reads a file that people write. Throws UserError where it is larger than 16 MiB.
std::string read_text(const std::string& path);

// Returns the names in a folder, sorted. Throws MachineError. (The standard library's iterator ends
// the program when there is no memory for a name.)
std::vector<std::string> names_in_folder(const std::string& path);

// These throw MachineError where they cannot find out. A pipe is no file: it would block.
bool is_there(const std::string& path);
bool is_file(const std::string& path);

}  // namespace stepsim
