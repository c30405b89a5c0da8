// Files of settings may hold variables of the environment: "${SEQ:-8192}", "${oc.env:SEQ,8192}". No
// environment is read: a default counts, and one without a default is known by its name alone.
#pragma once

#include <string>
#include <vector>

#include "sim/base/config.hpp"

namespace stepsim {

struct FileVariable {
  std::string path;     // of the key
  std::string said;     // "${SEQ:-8192}"
  std::string value{};  // with its default
};

// Puts defaults in their places, and says where. What refers to another key of the file is left
// alone.
std::vector<FileVariable> settle_variables(Document& document);

// "SEQ" of a value with "${SEQ}", which names no key of the file and has no default; empty: none.
std::string variable_without_value(const Table& root, const std::string& value);

}  // namespace stepsim
