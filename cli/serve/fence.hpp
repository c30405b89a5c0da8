// A fence says what questions of others may read: the catalogue, and folders that were named.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/player.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

struct Fence {
  Catalogue data;                       // with absolute folders
  std::vector<std::string> folders{};   // that were named, as absolute paths
  std::vector<std::string> readable{};  // those and the parts of the catalogue
  bool shut_in = true;                  // the kernel keeps questions to what is readable
  Player player{};                      // SimGrid's where it is there, loaded already
};

// Throws UserError where one of them is no folder; warns of what is missing here.
Fence fence_around(const Catalogue& data, const std::vector<std::string>& folders);

}  // namespace stepsim
