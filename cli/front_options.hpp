// These options stand before the command and say which catalogue it reads.
#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// Returns where the data is that belongs to this program: beside an installed binary, or in the
// source tree that the binary was built from.
std::string installed_data();

// These are the folders of the catalogue, the installed one first.
struct FrontOptions {
  std::vector<std::string> given;  // --data
  bool user_data = true;
};
// Takes these options off the front.
FrontOptions take_front_options(std::vector<std::string>& words);
// Throws UserError when a folder holds no data.
Catalogue catalogue_of(const FrontOptions& options);

}  // namespace stepsim
