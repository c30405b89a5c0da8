// This reads the machine that a platform file of SimGrid describes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/engine/platform_file.hpp"
#include "topology/network_routes.hpp"

namespace stepsim {

class Catalogue;

// Hosts are nodes. One that names a `node` of the catalogue is such a machine, whose NICs begin at
// the file's links; one that names a `gpu` is a single GPU in a node of its own, from which the
// file's links lead to the others.
struct PlatformMachine {
  PlatformFile file;
  std::string node;  // of the catalogue: what every host is, or sits in
  bool of_gpus = false;
};

// Reads the file. Hosts that do not say what they are, or sit in, are or sit in `node`. Throws
// UserError with the line of the host.
PlatformMachine machine_of(const Catalogue& data, const std::string& path, const std::string& node);

// Returns the ways between the hosts in these places, every node a host.
NetworkRoutes ways_of(const PlatformMachine& machine, std::span<const std::uint32_t> places);

}  // namespace stepsim
