// This holds the sockets under `serve`. The server itself only listens and passes on; whoever has
// not shown the token gets no further than its first line. A question is computed in a process of
// its own, so that one that takes long, or crashes, takes nobody along.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/serve/respond.hpp"

namespace stepsim {

// These limit how much of this machine questions may take.
struct ServeLimits {
  std::size_t long_ones = 2;  // computed at once; short ones have places of their own
  std::chrono::milliseconds waiting = std::chrono::minutes(5);  // for one of the places
  std::uint64_t memory = 2ull << 30;                            // bytes of each process
};

struct Listening {
  std::string address;     // of this machine
  std::uint16_t port = 0;  // 0: a free one
  ServeLimits limits{};
  int log = -1;  // a file that gets a line for each request of somebody known
};

// Serves until SIGINT or SIGTERM. `ready` hears of the port when browsers can call. Throws
// UserError where nobody can listen.
void serve(const Serving& serving, const Listening& where,
           const std::function<void(std::uint16_t port)>& ready);

// Returns whether only programs of this machine can call there. Throws UserError where it is no
// address.
bool is_of_this_machine_alone(const std::string& address);

}  // namespace stepsim
