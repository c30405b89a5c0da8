// A platform file of SimGrid is read as SimGrid itself reads it: hosts, and the links on every way.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"

namespace stepsim {

struct PlatformFile {
  struct Host {
    std::string name{};
    int line = 0;  // of its element, or of the cluster that it is one of
    std::vector<std::pair<std::string, std::string>> properties{};
  };
  struct Line {
    std::string name{};
    BytesPerSecond bandwidth{};
    bool shared = true;  // else every flow has all of it
  };
  struct Way {
    Seconds latency{};
    std::vector<std::uint32_t> lines{};  // none: no way leads there
  };

  std::string file{};
  std::vector<Host> hosts{};  // node2 before node10
  std::vector<Line> lines{};
  std::vector<Way> ways{};  // [from * hosts + to]
};

// Reads the file by SimGrid in a child process. Throws UserError with file and line.
PlatformFile read_platform_file(const std::string& path);

inline constexpr std::size_t most_platform_hosts = 1024;

}  // namespace stepsim
