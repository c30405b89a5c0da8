// Files that another file names, where that one may lie in a folder below the one it was meant for.
#pragma once

#include <optional>
#include <string>

namespace stepsim {

// Returns the last parts of `said`, below one of the folders that `file` lies in: programs are
// started at the top of a repository. That is never the top of the file system: "/etc/passwd" is
// not meant. There is nothing where no such file is.
std::optional<std::string> find_above(const std::string& file, const std::string& said);

// Returns the folder that a file belongs to: the nearest above it with ".git", else the one that
// stepsim is called in where the file lies below that, else the file's own.
std::string repository_of(const std::string& file);

// Finds what `said` names from the file's folder, the folders above it up to the top of the
// repository, and the one that stepsim is called in. What lies outside the repository is not found,
// nor what a link leads to out of it.
std::optional<std::string> find_in_repository(const std::string& file, const std::string& said);

}  // namespace stepsim
