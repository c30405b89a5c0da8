// Files that another file names, where that one may lie in a folder below the one it was meant for.
#pragma once

#include <optional>
#include <string>

namespace stepsim {

// Returns the last parts of `said`, below one of the folders that `file` lies in: programs are
// started at the top of a repository. That is never the top of the file system: "/etc/passwd" is
// not meant. There is nothing where no such file is.
std::optional<std::string> find_above(const std::string& file, const std::string& said);

}  // namespace stepsim
